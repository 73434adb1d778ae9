#!/usr/bin/env bash
# Every check but numa.sh (`make test-numa`), stress.sh and start.sh (`make soak`). all.sh quick: those of the stable
# toolchain only, as `make test` runs them. A check that fails does not stop those behind it: the end names each.
set -uo pipefail
cd "$(dirname "$0")/.."
checks=(style test loom exports deny r)
[ "${1:-}" = quick ] || checks+=(isa hwloc miri san lisp fuzz foreign)
failed=()
for check in "${checks[@]}"; do
    echo "== ci/$check.sh"
    "ci/$check.sh" || failed+=("$check")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]} (each alone: ci/NAME.sh)" >&2
    exit 1
fi
echo "every check passed: ${checks[*]}"
