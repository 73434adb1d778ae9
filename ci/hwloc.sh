#!/usr/bin/env bash
# Reads every machine that hwloc's authors saved, and compares with what hwloc reads: `ci/hwloc.sh [FOLDER]`.
# FOLDER holds the archives (tests/hwloc/linux of https://github.com/open-mpi/hwloc); HWLOC_TESTS names it, too. Without one,
# or without lstopo-no-graphics, it says so and does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-${HWLOC_TESTS:-}}
if [ -z "$folder" ] || ! ls "$folder"/*.tar.bz2 > /dev/null 2>&1; then
    echo "skipped: no archives of hwloc; HWLOC_TESTS=FOLDER names a folder of them"
    exit 0
fi
if ! command -v lstopo-no-graphics > /dev/null; then
    echo "skipped: no lstopo-no-graphics (apt-get install hwloc-nox)"
    exit 0
fi
trees=$(mktemp -d)
trap 'rm -rf "$trees"' EXIT
for archive in "$folder"/*.tar.bz2; do
    name=$(basename "$archive" .tar.bz2)
    mkdir "$trees/$name"
    tar -xjf "$archive" -C "$trees/$name" --strip-components=1
done
LARGESSE_HWLOC_TREES=$trees cargo test -q -p largesse-machine --test saved hwloc_agrees_on_its_archives -- --nocapture
