#!/usr/bin/env bash
# Every check but numa.sh (`make test-numa`), stress.sh and start.sh (`make soak`). all.sh quick: those of the stable
# toolchain only, as `make test` runs them. A check that fails does not stop those behind it: the end names each, and
# says how long each took.
set -uo pipefail
cd "$(dirname "$0")/.."
checks=(style test deny r python loom documents euslisp)
[ "${1:-}" = quick ] || checks+=(fault-path isa hwloc miri san lisp fuzz foreign containers)
# R uses one processor: these run at the same time, and their output follows.
beside=(python loom)
declare -A pids
logs=$(mktemp -d)
trap '[ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2> /dev/null; rm -rf "$logs"' EXIT
failed=() times=()
for check in "${checks[@]}"; do
    echo "== ci/$check.sh, $SECONDS s after the start"
    since=$SECONDS
    case $check in
    r)
        for other in "${beside[@]}"; do
            "ci/$other.sh" > "$logs/$other" 2>&1 &
            pids[$other]=$!
        done
        ci/r.sh ;;
    python | loom)
        wait "${pids[$check]}"
        status=$?
        unset "pids[$check]"
        cat "$logs/$check"
        (exit $status) ;;
    documents) ci/documents.py ;; # after R's check, which installs the R package
    euslisp) ci/euslisp.py 2000 5 ;; # a fixed seed: new differences are looked for by `make soak`
    *) "ci/$check.sh" ;;
    esac || failed+=("$check")
    times+=("$check $((SECONDS - since))")
done
echo "Seconds: $(printf '%s, ' "${times[@]}")together $SECONDS"
if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]} (each alone: ci/NAME.sh)" >&2
    exit 1
fi
echo "every check passed: ${checks[*]}"
