#!/usr/bin/env bash
# nightly.sh COMPONENT...: installs nightly and these components where they are missing, and says so.
set -euo pipefail
if ! rustup run nightly rustc --version > /dev/null 2>&1; then
    echo "ci: installing the nightly toolchain: rustup toolchain install nightly --profile minimal"
    rustup toolchain install nightly --profile minimal
fi
for component in "$@"; do
    if ! rustup component list --toolchain nightly | grep -q "^$component.*(installed)"; then
        echo "ci: installing $component: rustup component add $component --toolchain nightly"
        rustup component add "$component" --toolchain nightly
    fi
done
