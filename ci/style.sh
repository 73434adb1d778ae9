#!/usr/bin/env bash
# One way to write it, and no lint is left for later: what warns at home is an error here.
set -euo pipefail
cd "$(dirname "$0")/.."
# Seconds, and without a build: the language of comments and documents, names of types, circles of files, the tables of
# docs/results, the hook for commit messages.
ci/prose.py
ci/names.py
ci/circles.sh
ci/results.py --check
ci/constants.py
python3 -m doctest ci/documents.py
ci/hooks/test.sh
cargo fmt --all -- --check
# A ban on a function that does not exist is only a warning on the standard error output: it counts.
trap 'rm -f "$messages"' EXIT
messages=$(mktemp)
cargo clippy --workspace --all-targets -- -D warnings 2>&1 | tee "$messages"
! grep -E 'clippy\.toml|does not refer to' "$messages"
