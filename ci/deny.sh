#!/usr/bin/env bash
# Licences that go with MIT OR Apache-2.0, no crate from elsewhere than crates.io: deny.toml says which.
# Without cargo-deny (it takes minutes to build) the licences are read from `cargo metadata`.
set -euo pipefail
cd "$(dirname "$0")/.."
if cargo deny --version > /dev/null 2>&1; then
    exec cargo deny --all-features check bans licenses sources
fi
echo "deny: no cargo-deny (cargo install cargo-deny --locked); licences and sources only"
cargo metadata --format-version 1 --locked | ci/licences.py deny.toml
