#!/usr/bin/env bash
# build.sh FOLDER: builds into FOLDER what the packages contain, for glibc 2.28 and later: programs/, libraries/,
# generated/ (manual pages, completions) and bom/ (bill of materials). Its own tools go to target/dist-tools, from PyPI
# and crates.io.
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
tools=$target/dist-tools
triple=$(uname -m)-unknown-linux-gnu glibc=2.28
. packaging/date.sh

# zig links for an old C library; cargo-zigbuild makes it cargo's linker.
if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
    python3 -m venv "$tools" && "$tools/bin/pip" install -q ziglang==0.17.1 cargo-zigbuild==0.24.1
fi
[ -x "$tools/bin/cargo-cyclonedx" ] || cargo install -q --locked --root "$tools" cargo-cyclonedx@0.5.9
export PATH=$tools/bin:$PATH
# The paths of this machine stay out of the packages.
export RUSTFLAGS="--remap-path-prefix=$PWD=/largesse --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"

build=(--target "$triple.$glibc" --locked)
cargo zigbuild "${build[@]}" --release \
    -p largesse-cli -p largesse-lisp-command -p largesse-bench -p largesse-generate
cargo zigbuild "${build[@]}" --profile preload -p largesse-pin
# The last version script counts: this one in place of rustc's list of names.
cargo-zigbuild rustc "${build[@]}" --profile preload -p largesse-preload -- \
    -C "link-arg=-Wl,--version-script=$PWD/fronts/preload/liblargesse.map"
regions/mpi/plugin/build.sh "$target/$triple/preload"

rm -rf "$folder"
install -D -t "$folder/programs" "$target/$triple"/release/largesse{,-lisp,-bench}
install -D -m 644 -t "$folder/libraries" "$target/$triple"/preload/liblargesse{,_pin}.so
for plugin in "$target/$triple"/preload/liblargesse-*.so; do
    [ ! -f "$plugin" ] || install -m 644 -t "$folder/libraries" "$plugin"
done
"$target/$triple/release/largesse-generate" "$folder/generated"

# One bill for each program and library; it lists the crates that are linked into it, with version, licence and hash.
for crate in fronts/cli fronts/lisp/command benches/engine fronts/preload fronts/pin; do
    cargo cyclonedx -q --manifest-path "$crate/Cargo.toml" --format json --target "$triple" \
        --override-filename largesse-bom
done
