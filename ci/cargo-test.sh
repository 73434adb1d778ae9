#!/usr/bin/env bash
# cargo test [ARGUMENTS...] [+ ARGUMENTS...]. The tests after each + run at the same time; their output follows that of
# the first. A test that fails does not stop those behind it. The end names the test programs that took longest, and
# each test that failed, with its program.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'rm -rf "$logs"' EXIT
logs=$(mktemp -d)
status=0 lanes=0 running=()
start() { # ARGUMENTS...: starts tests whose output goes to the log of the next number
    : > "$logs/$lanes" # `tail` may begin before cargo does
    cargo test --no-fail-fast "$@" > "$logs/$lanes" 2>&1 &
    running+=($!)
    lanes=$((lanes + 1))
}
arguments=()
for argument in "$@"; do
    if [ "$argument" = + ]; then
        start "${arguments[@]}"
        arguments=()
    else
        arguments+=("$argument")
    fi
done
start "${arguments[@]}"
# Shows the first while it runs.
tail -n +1 -f --pid="${running[0]}" "$logs/0" &
for lane in "${!running[@]}"; do
    wait "${running[$lane]}" || status=$?
done
wait
for ((lane = 1; lane < lanes; lane++)); do cat "$logs/$lane"; done
# "Running FILE (TARGET)" or "Doc-tests CRATE" stands before the tests of each program.
target='/^ +Running /{target=$2=="unittests" ? $4 : $NF; sub(/^\(.*\//, "", target); sub(/-[0-9a-f]+\)$/, "", target)}
    /^ +Doc-tests /{target=$2 " (documents)"}'
echo
echo "Longest test programs, in seconds:"
awk "$target"'/^test result: .* finished in /{sub(/s$/, "", $NF); printf "%8.1f  %s\n", $NF, target}' "$logs"/* | sort -rn | head -n 12
[ $status -ne 0 ] || exit 0
echo
echo "Tests that failed:"
awk "$target"'/^test .* \.\.\. FAILED$/{sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); print "  " target ": " $0; failed++}
    /^error: (test failed|could not compile|[0-9]+ targets? failed)/{print "  " $0}
    END{if (!failed) print "  none by name: a program ended early; see above"}' "$logs"/*
exit 1
