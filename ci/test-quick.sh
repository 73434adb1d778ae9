#!/usr/bin/env bash
# Unit tests and a few whole programs that need neither root, a network nor an installed package: at most 90 seconds
# after the build. They are a part of those of test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
crates=(agent arena malloc pages plot policy random report settings store terminal text tests)
whole=(layers links settings odd_requests)
tests=(--lib "${crates[@]/#/--package=largesse-}" "${whole[@]/#/--test=}")
# The same packages as in the Makefile: another choice has other features, and builds their dependencies again.
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench
cargo test --no-run --quiet "${tests[@]}"
SECONDS=0
status=0
ci/cargo-test.sh "${tests[@]}" || status=$?
echo "the tests took $SECONDS s"
exit $status
