#!/usr/bin/env bash
# cargo test [ARGUMENTS...]. A test that fails does not stop those behind it. The end names the test programs that took
# longest, and each test that failed, with its program.
set -euo pipefail
cd "$(dirname "$0")/.."
trap 'rm -f "$log"' EXIT
log=$(mktemp)
status=0
cargo test --no-fail-fast "$@" 2>&1 | tee "$log" || status=$?
# "Running FILE (TARGET)" or "Doc-tests CRATE" stands before the tests of each program.
target='/^ +Running /{target=$2=="unittests" ? $4 : $NF; sub(/^\(.*\//, "", target); sub(/-[0-9a-f]+\)$/, "", target)}
    /^ +Doc-tests /{target=$2 " (documents)"}'
echo
echo "Longest test programs, in seconds:"
awk "$target"'/^test result: .* finished in /{sub(/s$/, "", $NF); printf "%8.1f  %s\n", $NF, target}' "$log" | sort -rn | head -n 12
[ $status -ne 0 ] || exit 0
echo
echo "Tests that failed:"
awk "$target"'/^test .* \.\.\. FAILED$/{sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); print "  " target ": " $0; failed++}
    /^error: (test failed|could not compile|[0-9]+ targets? failed)/{print "  " $0}
    END{if (!failed) print "  none by name: a program ended early; see above"}' "$log"
exit 1
