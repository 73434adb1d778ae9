#!/usr/bin/env bash
# Every check but numa.sh (`make test-numa`), stress.sh and start.sh (`make soak`). all.sh quick: those of the stable
# toolchain only, as `make test` runs them.
set -euo pipefail
cd "$(dirname "$0")/.."
checks=(style test loom exports deny r)
[ "${1:-}" = quick ] || checks+=(isa hwloc miri san lisp fuzz foreign)
for check in "${checks[@]}"; do
    echo "== ci/$check.sh"
    "ci/$check.sh"
done
echo "every check passed: ${checks[*]}"
