#!/usr/bin/env bash
# archive.sh FOLDER FILE: packs a folder as FILE (.tar.gz), in one folder of the file's name, with the same bytes each
# time.
set -euo pipefail
name=$(basename "$2" .tar.gz)
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" --format=gnu \
    --transform="s,^\.,$name,S" -C "$1" -cf - . | gzip -9n > "$2"
