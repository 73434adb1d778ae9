#!/usr/bin/env bash
# dist.sh BUILT FOLDER: makes every package, from what build.sh built, in FOLDER.
set -euo pipefail
built=$(realpath "$1")
cd "$(dirname "$0")/.."
rm -rf "$2"
mkdir -p "$2"
dist=$(realpath "$2")
. packaging/date.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PROGRAMS=$built/programs LIBRARIES=$built/libraries GENERATED=$built/generated packaging/tree.sh "$work/tree"
install -m 644 -t "$work/tree/share/doc/largesse" "$built"/bom/*
packaging/check.sh "$work/tree"
version=$("$work/tree/bin/largesse" --version | awk '{print $2}')

packaging/deb.sh "$work/tree" "$dist"
packaging/archive.sh "$work/tree" "$dist/largesse-$version-linux-$(uname -m).tar.gz"
if command -v R > /dev/null; then
    packaging/r.sh "$dist" "$built/libraries/liblargesse.so"
else
    echo "dist: no R source package: R is not here (apt-get install r-base-core)" >&2
fi
if [ -x packaging/wheel.sh ]; then
    LIBRARY=$work/tree/lib/largesse/liblargesse.so COMMAND=$work/tree/bin/largesse packaging/wheel.sh "$dist"
fi
if [ -e .git ]; then
    git archive --format=tar --prefix="largesse-$version/" HEAD | gzip -9n > "$dist/largesse-$version-source.tar.gz"
fi
(cd "$dist" && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS)
ls -l "$dist"
