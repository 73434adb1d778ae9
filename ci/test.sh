#!/usr/bin/env bash
# Every test that the pinned stable toolchain can run. The whole-program tests use the library and
# the command as users have them, so these are built first. test.sh [ARGUMENTS OF cargo test...].
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo build --profile preload-checked -p largesse-preload
cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench
regions/mpi/plugin/build.sh "${CARGO_TARGET_DIR:-target}/preload"
[ $# -eq 0 ] || exec ci/cargo-test.sh "$@"

# Whole programs wait for stores, timers and each other, and leave processors idle: the tests of the crates run at
# the same time. Both are chosen from the whole workspace, so that all share one build. A name that is in both is a whole
# program's.
cargo test --workspace --no-run
chosen() { # programs|crates: options that choose these test programs
    cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
programs, crates = set(), set()
for package in json.load(sys.stdin)["packages"]:
    to = programs if package["name"] in ("largesse-tests", "largesse-bench") else crates
    to.update("--test=" + target["name"] for target in package["targets"] if "test" in target["kind"])
print(*sorted({"programs": programs, "crates": crates - programs}[sys.argv[1]]), sep="\n")' "$1"
}
mapfile -t programs < <(chosen programs)
mapfile -t crates < <(chosen crates)
[ ${#programs[@]} -gt 0 ] && [ ${#crates[@]} -gt 0 ]
exec ci/cargo-test.sh --workspace "${programs[@]}" + --workspace --lib --bins "${crates[@]}" + --workspace --doc
