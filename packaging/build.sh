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
# The builder's own settings of cargo do not change the packages.
unset ${!CARGO_PROFILE_@} ${!CARGO_BUILD_@} CARGO_ENCODED_RUSTFLAGS
# The paths of this machine stay out of the packages.
remap() { printf -- ' --remap-path-prefix=%s' "$@"; }
RUSTFLAGS=$(remap "${CARGO_HOME:-$HOME/.cargo}=/cargo" "$PWD=/largesse" "$target=/target")
export RUSTFLAGS
# Packages are stripped.
export CARGO_PROFILE_RELEASE_DEBUG=none CARGO_PROFILE_PRELOAD_DEBUG=none

build=(--target "$triple.$glibc" --locked)
libraries() {
    cargo zigbuild "${build[@]}" --profile preload -p largesse-pin
    # zig's linker knows no -Bsymbolic-functions.
    export LARGESSE_BSYMBOLIC=1
    # The last version script counts: this one in place of rustc's list of names.
    cargo-zigbuild rustc "${build[@]}" --profile preload -p largesse-preload -- \
        -C "link-arg=-Wl,--version-script=$PWD/fronts/preload/liblargesse.map"
    packaging/unsymbolic.py "$target/$triple/preload/liblargesse.so"
    regions/mpi/plugin/build.sh "$target/$triple/preload"
}
# The last step of the library uses one processor, so the commands are built at the same time.
libraries &
trap 'kill $! 2> /dev/null || true' EXIT
cargo zigbuild "${build[@]}" --release \
    -p largesse-cli -p largesse-lisp-command -p largesse-bench -p largesse-generate
wait $!

rm -rf "$folder"
install -D -t "$folder/programs" "$target/$triple"/release/largesse{,-lisp,-bench}
install -D -m 644 -t "$folder/libraries" "$target/$triple"/preload/liblargesse{,_pin}.so
for plugin in "$target/$triple"/preload/liblargesse-*.so; do
    [ ! -f "$plugin" ] || install -m 644 -t "$folder/libraries" "$plugin"
done
"$target/$triple/release/largesse-generate" "$folder/generated"

# A bill of materials for each program and library, as they link different crates: CycloneDX, with versions, licences
# and hashes. The tool writes one beside each Cargo.toml.
bills() { find . -name largesse-bom.json -not -path './target/*' "$@"; }
trap 'bills -delete' EXIT
cargo cyclonedx -q --format json --spec-version 1.5 --no-build-deps --target "$triple" --override-filename largesse-bom
install -d "$folder/bom"
while read -r name crate; do
    sed "s,file://$PWD,file:///largesse,g" "$crate/largesse-bom.json" > "$folder/bom/$name.cdx.json"
done << 'END'
largesse fronts/cli
largesse-lisp fronts/lisp/command
largesse-bench benches/engine
liblargesse fronts/preload
liblargesse_pin fronts/pin
END
