#!/usr/bin/env bash
# Checks the messages of all commits of a range with ci/hooks/commit-msg: commits.sh BASE..HEAD.
# Without a range, of those that the upstream branch does not have.
set -euo pipefail
cd "$(dirname "$0")/.."
range=${1:-@{upstream\}..HEAD}
commits=$(git rev-list --reverse --no-merges "$range") || {
    echo "Usage: ci/commits.sh BASE..HEAD, for instance ci/commits.sh origin/main..HEAD" >&2
    exit 2
}
file=$(mktemp)
trap 'rm -f "$file"' EXIT
failed=0 count=0
for commit in $commits; do
    git log -1 --format=%B "$commit" > "$file"
    ci/hooks/commit-msg "$file" || { echo "  in commit $(git rev-parse --short "$commit")" >&2; failed=1; }
    count=$((count + 1))
done
[ $failed -ne 0 ] || echo "commits: the messages of $count commits are in order"
exit $failed
