#!/usr/bin/env bash
# Text and messages from outside, and any sequence of calls from several threads, for a bounded time each.
# fuzz.sh [SECONDS]: 60 by default. A crash stays in fuzz/artifacts and fails this script.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
ci/nightly.sh
if ! cargo fuzz --version > /dev/null 2>&1; then
    echo "ci: installing cargo-fuzz: cargo install cargo-fuzz --locked"
    cargo install cargo-fuzz --locked
fi
cd fuzz
cargo +nightly fuzz build
for target in $(cargo +nightly fuzz list); do
    echo "fuzz: $target, $seconds s"
    # Heaps and ranges are made once and kept: that is no leak.
    cargo +nightly fuzz run "$target" -- -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=4096 -detect_leaks=0 -verbosity=0 -print_final_stats=1
done
