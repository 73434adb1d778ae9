#!/usr/bin/env bash
# Lisp while the heap collects at every n-th allocation, looks at everything afterwards and overwrites what died: the
# chapters, the benchmarks' kernels, and random programs, on 1, 2 and 8 threads. Answers must be those without.
# lisp.sh [SECONDS]: time for random programs, 20 by default; lisp.sh 7200 is the long form.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-20}
long=$([ "$seconds" -ge 600 ] && echo yes || echo no)
tests=fronts/lisp/tests
# With assertions: a thread that reads or writes a dead object stops there.
cargo build --release --config profile.release.debug-assertions=true --target-dir target/stress -p largesse-cli -p largesse-lisp-command
lisp=target/stress/release/largesse
folder=$(mktemp -d -p target)
trap 'rm -rf "$folder"' EXIT
export HERE=$tests/stress

answers() { # FILE OPTIONS... (and variables): what run.l prints
    local to=$1
    shift
    timeout 900 "$lisp" lisp "$@" "$tests/stress/run.l" > "$to" 2> "$to.said" || {
        echo "lisp: exit $? of THREADS=${THREADS:-1} FORMS=${FORMS:-} SEED=${SEED:-} COUNT=${COUNT:-} $lisp lisp $* $tests/stress/run.l" >&2
        tail -n 5 "$to" >&2; tail -n 5 "$to.said" >&2
        return 1
    }
}

agree() { # STRESS THREADS: as without
    THREADS=1 answers "$folder/calm"
    THREADS=$2 answers "$folder/stress" --stress "$1"
    diff "$folder/calm" "$folder/stress" || {
        echo "lisp: otherwise with --stress $1 on $2 threads: FORMS=${FORMS:-} SEED=${SEED:-} COUNT=${COUNT:-}" >&2
        return 1
    }
}

kernel() { # PROGRAM TIMES STRESS THREADS
    local results=()
    for stress in 0 "$3"; do
        results+=("$(cd benches/programs/lisp && PROGRAM=$1 TIMES=$2 THREADS=$4 timeout 900 "$lisp" lisp --stress "$stress" threads.l | sed -n 's/.*"answer":\(\[[^]]*\]\).*/\1/p')")
    done
    [ -n "${results[0]}" ] && [ "${results[0]}" = "${results[1]}" ] || {
        echo "lisp: $1 with --stress $3 on $4 threads: ${results[1]}, not ${results[0]}" >&2
        return 1
    }
}
lisp=$PWD/$lisp

# Chapters whose forms change what others see are for one thread.
alone="control objects hash bodies composition coordinates vectors"
for cases in "$tests"/*/cases/*.l; do
    chapter=$(basename "$cases" .l)
    export FORMS=$cases
    agree 101 1
    case " $alone " in *" $chapter "*) ;; *) agree 1009 2 && agree 4001 8 ;; esac
    if [ $long = yes ]; then
        agree 1 1
        agree 10 1
        case " $alone " in *" $chapter "*) ;; *) agree 10 2 && agree 1000 8 ;; esac
    fi
    echo "$chapter: the same answers"
done
unset FORMS

every=1009
[ $long = no ] || every=100
for threads in 1 2 8; do
    for kernel in compfib intfib inner-prod list-replace copy-seq body-intcheck make-cube; do
        kernel $kernel 3 $every $threads
    done
done
echo "kernels: the same answers"

end=$((SECONDS + seconds))
seed=$((RANDOM * 32768 + RANDOM))
programs=0
while [ $SECONDS -lt $end ]; do
    export SEED=$seed COUNT=100
    agree $((1 + RANDOM % 200)) 1
    agree $((50 + RANDOM % 1000)) 2
    agree $((200 + RANDOM % 4000)) 8
    seed=$((seed + COUNT)) programs=$((programs + COUNT))
done
echo "$programs random programs: the same answers"
