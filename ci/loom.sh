#!/usr/bin/env bash
# Every interleaving of the locks, of the agent's slots, and of threads that stop for a collection: seconds with two threads, minutes with three.
# Its own target folder: `--cfg loom` would otherwise make Cargo build everything twice each time.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/loom
RUSTFLAGS="--cfg loom" cargo test --release -p largesse-malloc -p largesse-agent -p largesse-gc --lib "$@"
