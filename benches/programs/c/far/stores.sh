#!/bin/bash
# Measures the cost of far pages in each store: runs pages.c in turns, prints medians and the ratio of speeds to
# memory:. Usage: stores.sh [ROUNDS [PAGE-SIZE]], from the checkout after `make all`. Stores that are not installed
# are named and left out.
set -euo pipefail
here=$(dirname "$0")
rounds=${1:-5}
size=${2:-1M}
# Without `--bind-to none` a rank has one processor, for which all of memory: is faster, too.
launcher=(mpirun.openmpi --oversubscribe --bind-to none -n 2)
[ "$(id -u)" != 0 ] || launcher+=(--allow-run-as-root)
wire=(--mca btl tcp,self --mca pml ob1 --mca osc pt2pt)
folder=$(mktemp -d -p target)
. ci/redis.sh
trap 'end_redis "$folder"; rm -rf "$folder"' EXIT

run() { # NAME STORE LAUNCHER...
    "${@:3}" target/release/largesse run --local 256M --far "$2" --page-size "$size" -- sh "$here/run.sh" pages --only sequential |
        awk -v name="$1" '/GB\/s/ { gb = $(NF - 1); sub(/ +[0-9.]+ us a page.*/, ""); print name "|" $0 "|" gb }' >> "$folder/rows" ||
        { code=$?; echo "$1: ended with status $code; why is said above" >&2; exit "$code"; }
}

is_here() { # PROGRAM WHAT
    command -v "$1" > "$folder/log" || { echo "left out: $2, since $1 is not here" >&2; false; }
}

if is_here redis-check-rdb redis:; then serve_redis "$folder"; fi
mpi=no
if is_here mpirun.openmpi mpi:; then mpi=yes; fi
for _ in $(seq "$rounds"); do
    run memory: memory:
    [ $mpi = no ] || run "mpi: (shared memory)" mpi: "${launcher[@]}"
    [ $mpi = no ] || run "mpi: (TCP)" mpi: "${launcher[@]}" "${wire[@]}"
    run file: "file:$PWD/$folder/pages"
    [ -z "$redis" ] || run redis: "$address"
    run memory:-again memory:
done
echo "page size $size, $rounds rounds: GB/s, median (least to most), and to memory:"
sort -t '|' -k2,2 -k1,1 -k3,3g "$folder/rows" | awk -F '|' '
    function show() { printf "%-15s %-22s %6.2f (%.2f to %.2f)\n", way, name, v[int((n + 1) / 2)], v[1], v[n]; med[way, name] = v[int((n + 1) / 2)] }
    $1 != name || $2 != way { if (n) show(); n = 0; name = $1; way = $2 }
    { v[++n] = $3 }
    END { show(); for (k in med) { split(k, p, SUBSEP); if (p[2] != "memory:") printf "%-15s %-22s %.2f of memory:\n", p[1], p[2], med[k] / med[p[1], "memory:"] } }'
