#!/usr/bin/env bash
# Every test that the pinned stable toolchain can run. The whole-program tests use the library and
# the command as users have them, so these are built first. test.sh [ARGUMENTS OF cargo test...].
# A test that fails does not stop those behind it: the end names each, with the command that repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo build --profile preload-checked -p largesse-preload
cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench
regions/mpi/plugin/build.sh "${CARGO_TARGET_DIR:-target}/preload"
if [ $# -eq 0 ]; then set -- --workspace; fi
trap 'rm -f "$log"' EXIT
log=$(mktemp)
cargo test --no-fail-fast "$@" 2>&1 | tee "$log" && exit
echo
echo "Tests that failed:"
# "Running FILE (TARGET)" or "Doc-tests CRATE" stands before the tests of each program.
awk '/^ +Running /{target=$2=="unittests" ? $4 : $NF; sub(/^\(.*\//, "", target); sub(/-[0-9a-f]+\)$/, "", target)}
    /^ +Doc-tests /{target=$2}
    /^test .* \.\.\. FAILED$/{sub(/^test /, ""); sub(/ \.\.\. FAILED$/, ""); print "  " target ": " $0; failed++}
    /^error: (test failed|could not compile|[0-9]+ targets? failed)/{print "  " $0}
    END{if (!failed) print "  none by name: a program ended early; see above"}' "$log"
exit 1
