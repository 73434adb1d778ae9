#!/usr/bin/env bash
# The documentation as a site: the guides in target/book, the crates in target/doc. A link in rustdoc that leads nowhere
# is an error. mdbook is taken from PATH, or is installed into target/tools, without touching the rest of the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
PATH=$PATH:$PWD/$target/tools/bin
if ! command -v mdbook > /dev/null; then
    echo "mdbook is not in PATH: installing it into $target/tools (a few minutes, needs a network)"
    cargo install --locked --root "$target/tools" mdbook
fi
python3 ci/summary.py
mdbook build --dest-dir "$target/book"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace
echo "the guides: $target/book/index.html; the crates: $target/doc/largesse_pager/index.html"
