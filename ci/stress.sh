#!/usr/bin/env bash
# Eight threads over four times local memory, every word checked: a minute on each store.
# stress.sh [SECONDS [STORE...]]; without stores, on every kind that is here, and signal handlers with every engine.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
folder=$(mktemp -d -p target)
. ci/redis.sh
trap 'end_redis "$folder"; rm -rf "$folder"' EXIT

stress() { # STORE LAUNCHER...
    echo "$*"
    "${@:2}" target/release/largesse run --local 64M --far "$1" -- "$folder/far_stress" 256 8 "$seconds"
}

gcc -O2 -pthread tests/programs/far_stress.c -o "$folder/far_stress"
if [ $# -gt 0 ]; then
    for store in "$@"; do stress "$store"; done
    exit
fi
gcc -O2 -pthread tests/programs/far_signals.c -o "$folder/far_signals"
for engine in auto user-mode thread; do
    echo "signals: $engine"
    (cd "$folder" && ../release/largesse run --local 8M --fault-engine "$engine" -- ./far_signals storm $((seconds * 100)))
done
stress memory:
stress "file:$PWD/$folder/pages"
if command -v redis-check-rdb > "$folder/log"; then
    serve_redis "$folder"
    stress "$address"
else
    echo "skipped: redis (apt-get install redis-tools)"
fi
if command -v mpirun.openmpi > "$folder/log" && [ -e target/preload/liblargesse-openmpi.so ]; then
    stress mpi: mpirun.openmpi --allow-run-as-root --oversubscribe -n 3
else
    echo "skipped: mpi (apt-get install openmpi-bin libopenmpi-dev && make plugins)"
fi
