#!/usr/bin/env bash
# Is there a cargo that can build this? Debian 12's own (0.66) is older than edition 2024.
set -euo pipefail
wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$(dirname "$0")/../rust-toolchain.toml")
install="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --default-toolchain $wanted"
if ! command -v cargo >/dev/null; then
    printf 'There is no cargo. Type:\n  %s\n  . "$HOME/.cargo/env"\n' "$install" >&2
    exit 1
fi
if ! found=$(cargo --version 2>&1); then
    printf 'cargo cannot start:\n  %s\nWith rustup, type:\n  rustup toolchain install %s\n' "$found" "$wanted" >&2
    exit 1
fi
version=$(awk '{print $2}' <<<"$found")
if [ "$(printf '%s\n' 1.95.0 "${version%%-*}" | sort -V | head -n 1)" != 1.95.0 ]; then
    printf 'cargo %s (%s) is too old for this project, which needs 1.95. Type:\n  %s\n  . "$HOME/.cargo/env"\n' \
        "$version" "$(command -v cargo)" "$install" >&2
    exit 1
fi
