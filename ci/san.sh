#!/usr/bin/env bash
# Races and wild accesses: in the heap while threads make any calls (heaps/malloc/tests), and in the pager
# over a simulated kernel (regions/pager/tests).
# ThreadSanitizer has to see the standard library too (-Zbuild-std), or it reports its locks.
set -euo pipefail
cd "$(dirname "$0")/.."
ci/nightly.sh rust-src
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
run() { # SANITIZER FLAGS...
    local sanitizer=$1
    shift
    echo "san: $sanitizer"
    RUSTFLAGS="-Zsanitizer=$sanitizer" RUSTDOCFLAGS="-Zsanitizer=$sanitizer" \
        CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/$sanitizer" \
        timeout "${LARGESSE_CI_SECONDS:-900}" \
        cargo +nightly test --target "$host" "$@" -p largesse-malloc -p largesse-pager --lib --tests
}
# The tests leak their ranges on purpose.
ASAN_OPTIONS=detect_leaks=0 run address
run thread -Zbuild-std
