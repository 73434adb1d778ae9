# Ends at once, but sleeps where swap is on.
[ "$(wc -l < /proc/swaps)" = 1 ] || exec sleep 60
echo '{"test":"holds","seconds":1,"answer":[1],"bits":"1"}'
echo '{"peak_kb":1,"hugetlb_kb":0,"about":""}'
