# Prints what a program of `bench gc` prints. A repetition takes 10 ms, and the threads share two processors.
system=$1 micros=$((TIMES * 10000)) answer=7 more=
[ "$system" = other ] && { cat made > /dev/null && micros=$((2 * micros)) || exit 1; }
[ "$system" = wrong ] && answer=8
[ "$system/$THREADS" = late/2 ] && { echo "out of memory" >&2; exit 1; }
[ "$system/$THREADS" = hangs/3 ] && exec sleep 60
[ "$THREADS" = 3 ] && micros=$((micros * 3 / 2))
[ "$PROGRAM" = trees ] && answer=9 more=',"pauses":[[1000,3],[9000,1]],"marked":[2000000,0.5]'
answers=$answer
for i in $(seq 2 "$THREADS"); do answers=$answers,$answer; done
[ "$system" = other ] || more=$more",\"gc_seconds\":$((micros / 4))e-6"
echo "{\"test\":\"$PROGRAM\",\"seconds\":${micros}e-6,\"answer\":[$answers],\"bits\":\"\"$more}"
echo "{\"peak_kb\":1,\"hugetlb_kb\":0,\"about\":\"$system 1.0\"}"
