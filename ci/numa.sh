#!/usr/bin/env bash
# Placement on NUMA nodes, and whole programs on an older kernel (Debian 12's 6.1), in an emulated machine of four nodes.
# numa.sh fetch: only the kernel, which is unpacked below target/ and not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-target}/guest
if ! ls "$folder"/vmlinuz-* > /dev/null 2>&1; then
    if [ "$(uname -m)" != x86_64 ]; then
        echo "skipped: the guest is an x86-64 one, as the library in it is"
        exit 0
    fi
    ci/need.sh qemu-system-x86 busybox-static e2fsprogs util-linux
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    echo "numa: fetching $package"
    rm -rf "$folder/fetched" && mkdir -p "$folder/fetched"
    (cd "$folder/fetched" && apt-get -q -o APT::Sandbox::User=root download "$package" > /dev/null && dpkg-deb -x ./*.deb .)
    mv "$folder"/fetched/boot/vmlinuz-* "$folder"
    rm -rf "$folder/fetched"
fi
[ "${1:-}" = fetch ] || LARGESSE_DEEP=1 cargo test -p largesse-tests --test guest
