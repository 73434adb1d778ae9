#!/usr/bin/env bash
# Races and wild accesses: in the heaps while threads make any calls (heaps/*/tests), and in the pager
# over a simulated kernel (regions/pager/tests).
# ThreadSanitizer has to see the standard library too (-Zbuild-std), or it reports its locks.
set -euo pipefail
cd "$(dirname "$0")/.."
ci/nightly.sh rust-src
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
run() { # SANITIZER TEST-OPTIONS... (and the array `build`)
    local sanitizer=$1
    shift
    echo "san: $sanitizer"
    RUSTFLAGS="-Zsanitizer=$sanitizer" RUSTDOCFLAGS="-Zsanitizer=$sanitizer" \
        CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$sanitizer" \
        timeout "${LARGESSE_CI_SECONDS:-900}" \
        cargo +nightly test --target "$host" "${build[@]}" -p largesse-malloc -p largesse-gc -p largesse-pager --lib --tests -- "$@"
}
# The tests leak their ranges on purpose.
build=()
ASAN_OPTIONS=detect_leaks=0 run address
# It knows descriptors by their numbers, keeps some of its own, and takes those of the broker's table for the program's.
build=(-Zbuild-std)
run thread --skip broker::tests --skip file::tests
