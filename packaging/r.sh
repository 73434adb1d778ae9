#!/usr/bin/env bash
# r.sh FOLDER LIBRARY: makes the source package of R. R writes the time and the user into DESCRIPTION, which are replaced
# by the date of the commit. LIBRARY is the liblargesse.so with which its manual is built.
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
LARGESSE_LIBRARY=$(realpath "$2") BUILD=$work/build make -s -C "$(dirname "$0")/../fronts/r" build > "$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
archive=$(ls "$work"/build/largesse_*.tar.gz)
tar -xzf "$archive" -C "$work"
sed -i "s/^Packaged: .*/Packaged: $(date -u -d "@$SOURCE_DATE_EPOCH" '+%F %T') UTC; largesse/" "$work/largesse/DESCRIPTION"
# R names the files' sums in MD5, from which DESCRIPTION is excluded.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --format=gnu -C "$work" -cf - largesse |
    gzip -9n > "$folder/$(basename "$archive")"
