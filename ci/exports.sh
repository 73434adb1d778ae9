#!/usr/bin/env bash
# The library defines what its header declares and what the table gives a reason for: any other name
# would capture calls of programs.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo test -p largesse-tests --test exports --test layers
