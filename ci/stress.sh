#!/usr/bin/env bash
# Eight threads over four times local memory, every word checked: a minute on each store.
# stress.sh [SECONDS [STORE...]]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
folder=$(mktemp -d -p target)
trap 'rm -rf "$folder"' EXIT
stores=("$@")
[ $# -gt 0 ] || stores=(memory: "file:$PWD/$folder/pages")
gcc -O2 -pthread tests/programs/far_stress.c -o "$folder/far_stress"
for store in "${stores[@]}"; do
    echo "$store"
    target/release/largesse run --local 64M --far "$store" -- "$folder/far_stress" 256 8 "$seconds"
done
