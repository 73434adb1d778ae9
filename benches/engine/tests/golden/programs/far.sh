# Prints what a program of `bench far` prints, by LOCAL (bytes) and PAGE, which the stand-in for `largesse run` sets.
mode=$1 bits=f0 time=100
[ "$mode" = fails ] && { echo "no compiler" >&2; exit 5; }
case $PAGE/$((LOCAL >> 20)) in
    4K/8) time=400;;
    4K/4) [ "$mode" = walk ] && exec sleep 60;;
    16K/8) time=125;;
    16K/4) bits=f1;;
    64K/4) exit 6;;
    auto/8) time=250;;
    auto/4) case $* in *--tune*) time=150;; *) [ "$mode" = walk ] && exec sleep 60;; esac;;
esac
[ "$mode" = lies ] && [ -n "$LOCAL" ] && bits=f2
[ -n "$LOCAL" ] || sleep 0.3
echo "{\"test\":\"$mode\",\"seconds\":${time}e-2,\"answer\":[1],\"bits\":\"$bits\"}"
echo '{"peak_kb":1,"hugetlb_kb":0,"about":""}'
