#!/usr/bin/env bash
# tree.sh TREE: lays built files out in the empty folder TREE as below a prefix, stripped, with install.sh beside them.
# The built files are in PROGRAMS, LIBRARIES and GENERATED, by default where `make` puts them. Builds nothing.
set -euo pipefail
tree=$1
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
programs=${PROGRAMS:-$target/release} libraries=${LIBRARIES:-$target/preload} generated=${GENERATED:-$target/generated}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
header=fronts/preload/include/largesse.h
abi=$(sed -n 's/^#define LARGESSE_ABI //p' "$header")

for file in "$programs"/largesse{,-lisp,-bench} "$libraries"/liblargesse{,_pin}.so "$generated/man/man1/largesse.1"; do
    [ -f "$file" ] || { echo "$file is not built: type make" >&2; exit 1; }
done

install -D -m 755 -t "$tree/bin" "$programs"/largesse{,-lisp,-bench}
install -D -m 644 -t "$tree/lib/largesse" "$libraries"/liblargesse{,_pin}.so
for plugin in "$libraries"/liblargesse-*.so; do # one for each MPI library that was there
    [ ! -f "$plugin" ] || install -m 644 -t "$tree/lib/largesse" "$plugin"
done
strip --strip-unneeded "$tree"/bin/* "$tree"/lib/largesse/*
ln -s liblargesse.so "$tree/lib/largesse/liblargesse.so.$abi" # linked programs look for this name

install -D -m 644 -t "$tree/include" "$header" fronts/preload/include/largesse.f90
for name in pkgconfig/largesse.pc cmake/largesse/largesse-config.cmake cmake/largesse/largesse-config-version.cmake; do
    install -d "$tree/lib/$(dirname "$name")"
    sed "s/@VERSION@/$version/; s/@ABI@/$abi/" "packaging/files/$(basename "$name").in" > "$tree/lib/$name"
done

install -d "$tree/share/largesse/benches" "$tree/share/doc/largesse"
cp -R benches/definitions benches/programs "$tree/share/largesse/benches/"
cp -R "$generated/." "$tree/share/"
install -m 644 -t "$tree/share/doc/largesse" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md \
    docs/examples/seccomp.json
install -m 755 -t "$tree" packaging/install.sh
chmod -R u=rwX,go=rX "$tree"
