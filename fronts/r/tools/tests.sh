#!/usr/bin/env bash
# tests.sh TARBALL DIRECTORY COMMAND...: every test of the package, each in an R started by COMMAND, for at most 5 minutes.
# The package is installed below DIRECTORY, which a user without rights must be able to read.
set -euo pipefail
tarball=$1 directory=$2
shift 2
rm -rf "$directory"
mkdir -p "$directory/library"
"${R:-R}" CMD INSTALL --no-docs -l "$directory/library" "$tarball" > "$directory/install.out" 2>&1 ||
    { cat "$directory/install.out"; exit 1; }
workplace=$(mktemp -d)
trap 'rm -rf "$workplace"' EXIT
tar -xzf "$tarball" -C "$workplace" largesse/tests
cp -R "$directory/library" "$workplace/library"
chmod -R a+rwX "$workplace"
cd "$workplace/largesse/tests"
unset LARGESSE_LIBRARY # the package has its copy, and users cannot read every build directory
for test in *.R; do
    printf '%s ... ' "$test"
    if HOME="$workplace" TMPDIR="$workplace" R_LIBS="$workplace/library" timeout 300 "$@" Rscript --vanilla "$test" > "$test.out" 2>&1; then
        echo "ok$(sed -n 's/^skipped:/, skipped:/p' "$test.out" | tr -d '\n')"
    else
        echo "FAILED"
        tail -40 "$test.out"
        exit 1
    fi
done
