# Prints what a program of `bench r` prints. Every run takes a little longer than the one before: $STATE counts.
mode=$1 count=$(cat "$STATE" 2>/dev/null || echo 0)
echo $((count + 1)) > "$STATE"
case $mode in
    fails) echo "no package" >&2; exit 3;;
    hello) echo hello; exit;;
    mute) exit;;
    sleeps) exec sleep 60;;
    killed) kill -9 $$;;
esac
[ "$UNDER" = broken ] && { echo one >&2; echo two >&2; exit 4; }
case $UNDER in stock) time=1000;; largesse) time=800;; quick) time=500;; *) time=1500;; esac
bits=f0
[ "$UNDER" = liar ] && bits=f1
echo "{\"test\":\"first\",\"seconds\":$((time + count))e-3,\"answer\":[2.5],\"bits\":\"$bits\"}"
case $* in *second*) echo '{"test":"second","seconds":0.25,"answer":[1.25],"bits":"e0"}';; esac
echo "{\"peak_kb\":$((20480 + 1024 * count)),\"hugetlb_kb\":2048,\"about\":\"sh $COMMON$INHERITED\"}"
