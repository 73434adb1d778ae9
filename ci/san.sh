#!/usr/bin/env bash
# Races and wild accesses: in the heaps while threads make any calls (heaps/*/tests), and in the pager
# over a simulated kernel (regions/pager/tests), its stores and its policies.
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
        timeout "${LARGESSE_CI_SECONDS:-1800}" \
        cargo +nightly test --no-fail-fast --target "$host" "${build[@]}" -p largesse-malloc -p largesse-gc -p largesse-store -p largesse-policy -p largesse-pager --lib --tests -- "$@"
}
# The tests leak their ranges on purpose.
build=()
ASAN_OPTIONS=detect_leaks=0 run address
# It knows descriptors by their numbers, and takes those of the broker's own table for the program's (ci/tsan.txt). It does not see
# our system calls, so that memory of one test at an address that another one has unmapped is a race: one after the other.
build=(-Zbuild-std)
TSAN_OPTIONS="suppressions=$PWD/ci/tsan.txt" run thread --test-threads 1
