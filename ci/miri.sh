#!/usr/bin/env bash
# Undefined behaviour in what serves malloc, over a stand-in for the kernel (os/pages/src/sys/miri.rs).
# Addresses become integers and come back, as in every allocator: provenance is permissive.
set -euo pipefail
cd "$(dirname "$0")/.."
ci/nightly.sh miri rust-src
export MIRIFLAGS=${MIRIFLAGS:--Zmiri-permissive-provenance -Zmiri-ignore-leaks -Zmiri-disable-isolation}
# Proptest's cases take a thousand times longer here.
export PROPTEST_CASES=${PROPTEST_CASES:-4} PROPTEST_DISABLE_FAILURE_PERSISTENCE=true
for crate in largesse-pages largesse-arena largesse-malloc; do
    echo "miri: $crate"
    timeout "${LARGESSE_CI_SECONDS:-900}" cargo +nightly miri test -p "$crate" "$@"
done
# The collector's own tests, and those of whole collections that are short enough.
echo "miri: largesse-gc"
timeout "${LARGESSE_CI_SECONDS:-900}" cargo +nightly miri test -p largesse-gc --lib --test objects "$@" -- \
    --skip a_full_heap --skip vectors_of_every_size --skip a_list_outlives --skip what_several
