#!/usr/bin/env bash
# The R package: R CMD check, and its tests once more preloaded and as an unprivileged user.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v R > /dev/null; then
    echo "skipped: no R (apt-get install r-base-core)"
    exit 0
fi
cargo build --profile preload -p largesse-preload -p largesse-pin
checks=(check check-preloaded)
if [ "$(id -u)" = 0 ]; then
    checks+=(check-unprivileged)
else
    echo "skipped: only root can become an unprivileged user; the current one is one"
fi
# One call, which builds the package once.
make -C fronts/r "${checks[@]}"
