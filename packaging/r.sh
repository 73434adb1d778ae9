#!/usr/bin/env bash
# r.sh FOLDER LIBRARY: makes the source package of R. R writes the time and the user into DESCRIPTION, which are
# replaced by the date of the commit. LIBRARY is the liblargesse.so with which the package is built.
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LARGESSE_LIBRARY BUILD=$work/build
LARGESSE_LIBRARY=$(realpath "$2")
make -s -C "$(dirname "$0")/../fronts/r" build > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
archive=$(ls "$work"/build/largesse_*.tar.gz)
tar -xzf "$archive" -C "$work"
date=$(date -u -d "@$SOURCE_DATE_EPOCH" '+%F %T')
sed -i "s/^Packaged: .*/Packaged: $date UTC; largesse/" "$work/largesse/DESCRIPTION"
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
    -C "$work" -cf - largesse | gzip -9n > "$folder/$(basename "$archive")"
