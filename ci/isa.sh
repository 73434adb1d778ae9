#!/usr/bin/env bash
# The kernels on processors that are not here, emulated: x86-64 without AVX-512, without AVX2, without FMA, and AArch64.
# All must find the bits that kernels/tests/instruction_sets.rs names. And os/machine's counter, clock and pinning on AArch64.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in qemu-x86_64 qemu-aarch64 aarch64-linux-gnu-gcc; do
    if ! command -v "$program" > /dev/null; then
        echo "skipped: no $program (apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)"
        exit 0
    fi
done
# The built test programs, one path a line.
programs() { cargo test -p largesse-kernels --no-run --message-format=json "$@" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'; }
# Emulation is slow: fewer random vectors. And what waits for what on a processor, it does not know.
export PROPTEST_CASES=4
timeless=(--skip chains_are_slower_than_independent_operations)
if [ "$(uname -m)" = x86_64 ]; then
    programs | while read -r program; do
        for processor in EPYC Nehalem; do
            echo "$processor: ${program##*/}"
            qemu-x86_64 -cpu "$processor" "$program" --test-threads 2 "${timeless[@]}" 2> >(grep -v "TCG doesn.t support" >&2)
        done
    done
fi
rustup target add aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
programs --target aarch64-unknown-linux-gnu | while read -r program; do
    echo "AArch64: ${program##*/}"
    qemu-aarch64 -L /usr/aarch64-linux-gnu "$program" --test-threads 2 "${timeless[@]}"
done
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
    cargo test -p largesse-machine --lib --target aarch64-unknown-linux-gnu
