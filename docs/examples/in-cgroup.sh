#!/bin/sh
# in-cgroup.sh LIMIT_MIB COMMAND ...: runs COMMAND in a control group with LIMIT_MIB of memory and no swap, and
# prints the highest memory use: in total, of its programs, of the page cache, and of each program by name; and how
# many processes the kernel killed for lack of memory.
# It needs root and a memory controller (version 1 or 2), and exits with 77 without them. With systemd, any user
# can set the same limit: systemd-run --user --scope -p MemoryMax=512M -p MemorySwapMax=0 COMMAND ...
set -eu
limit=$(($1 << 20)); shift
cannot() { echo "skipped: $1" >&2; exit 77; }
[ "$(id -u)" = 0 ] || cannot "only root can make a control group"
root=/sys/fs/cgroup
if [ -f $root/cgroup.controllers ]; then
    grep -qw memory $root/cgroup.controllers || cannot "no memory controller in $root"
    echo +memory 2> /dev/null > $root/cgroup.subtree_control || cannot "the memory controller cannot be handed on"
    group=$root/largesse-$$ bound=memory.max peak=memory.peak anonymous=anon cache=file
    events=memory.events
else
    group=$root/memory/largesse-$$ bound=memory.limit_in_bytes peak=memory.max_usage_in_bytes
    anonymous=total_rss cache=total_cache events=memory.oom_control
fi
mkdir "$group" 2> /dev/null || cannot "$group cannot be made"
seen=$(mktemp)
# Kills the processes of COMMAND that are left, and removes the group.
leave() {
    while [ -n "$(cat "$group/cgroup.procs")" ]; do kill -9 $(cat "$group/cgroup.procs") 2> /dev/null || true; done
    rmdir "$group"; rm -f "$seen"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
echo $limit > "$group/$bound"
for swap in memory.swap.max:0 memory.memsw.limit_in_bytes:$limit memory.swappiness:0; do
    if [ -f "$group/${swap%:*}" ]; then echo "${swap#*:}" > "$group/${swap%:*}"; fi
done

sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group" "$@" &
command=$!
while kill -0 $command 2> /dev/null; do
    sed 's/^/stat /' "$group/memory.stat"
    for process in $(cat "$group/cgroup.procs"); do
        awk -v id=$process '/^Name:/ { name = $2 } /^VmHWM:/ { print "process", name, $2 * 1024, id }' \
            "/proc/$process/status" 2> /dev/null || true
    done
    sleep 0.2
done > "$seen"
status=0
wait $command || status=$?
awk -v limit=$limit -v peak="$(cat "$group/$peak")" -v anonymous=$anonymous -v cache=$cache '
    $1 == "stat" && $2 == anonymous && $3 > programs { programs = $3 }
    $1 == "stat" && $2 == cache && $3 > file { file = $3 }
    # A process has the name of the last program that it executed.
    $1 == "process" { name[$4] = $2; if ($3 > peak_of[$4]) peak_of[$4] = $3 }
    END {
        mib = 1024 * 1024
        printf "limit %.0f MiB, at most in use %.0f MiB: programs %.0f MiB, page cache %.0f MiB\n",
            limit / mib, peak / mib, programs / mib, file / mib
        for (id in name) if (peak_of[id] > most[name[id]]) most[name[id]] = peak_of[id]
        for (program in most) printf "  %s: %.0f MiB at most\n", program, most[program] / mib
    }' "$seen"
awk '$1 == "oom_kill" { print "  killed by the kernel: " $2 }' "$group/$events"
exit $status
