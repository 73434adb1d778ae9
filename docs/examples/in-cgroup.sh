#!/bin/sh
# in-cgroup.sh LIMIT_MIB COMMAND ...: runs COMMAND in a control group that may have LIMIT_MIB of memory and
# no swap, and prints the most that it had: in all, its programs, the page cache, and each program by name.
# Needs root, and the memory controller (version 1 or 2). With systemd, any user can have the same limit by
#   systemd-run --user --scope -p MemoryMax=512M -p MemorySwapMax=0 COMMAND ...
set -eu
limit=$(($1 << 20)); shift
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
    version=2
    group=/sys/fs/cgroup/largesse-$$
    echo +memory > /sys/fs/cgroup/cgroup.subtree_control
else
    version=1
    group=/sys/fs/cgroup/memory/largesse-$$
fi
mkdir "$group"
trap 'rmdir "$group"' EXIT
if [ $version = 2 ]; then
    echo $limit > "$group/memory.max"
    echo 0 > "$group/memory.swap.max"
    peak=memory.peak anonymous=anon cache=file
else
    echo $limit > "$group/memory.limit_in_bytes"
    echo $limit > "$group/memory.memsw.limit_in_bytes"
    peak=memory.max_usage_in_bytes anonymous=total_rss cache=total_cache
fi

sh -c 'echo $$ > "$0/cgroup.procs"; exec "$@"' "$group" "$@" &
command=$!
seen=$(mktemp)
while kill -0 $command 2> /dev/null; do
    sed "s/^/stat /" "$group/memory.stat" 2> /dev/null || true
    for process in $(cat "$group/cgroup.procs"); do
        awk '/^Name:/ { name = $2 } /^VmHWM:/ { print "process", name, $2 * 1024 }' "/proc/$process/status" 2> /dev/null || true
    done
    sleep 0.2
done >> "$seen"
status=0
wait $command || status=$?
awk -v limit=$limit -v peak="$(cat "$group/$peak")" -v anonymous=$anonymous -v cache=$cache '
    $1 == "stat" && $2 == anonymous && $3 > programs { programs = $3 }
    $1 == "stat" && $2 == cache && $3 > file { file = $3 }
    $1 == "process" && $3 > most[$2] { most[$2] = $3 }
    END {
        mib = 1024 * 1024
        printf "limit %.0f MiB, at most in use %.0f MiB: programs %.0f MiB, page cache %.0f MiB\n",
            limit / mib, peak / mib, programs / mib, file / mib
        for (name in most) printf "  %s: %.0f MiB\n", name, most[name] / mib
    }' "$seen"
rm -f "$seen"
exit $status
