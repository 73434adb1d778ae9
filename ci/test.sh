#!/usr/bin/env bash
# Every test that the pinned stable toolchain can run. The whole-program tests use the library and
# the command as users have them, so these are built first. test.sh [ARGUMENTS OF cargo test...].
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo build --profile preload-checked -p largesse-preload
cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench
regions/mpi/plugin/build.sh "${CARGO_TARGET_DIR:-target}/preload"
if [ $# -eq 0 ]; then set -- --workspace; fi
exec ci/cargo-test.sh "$@"
