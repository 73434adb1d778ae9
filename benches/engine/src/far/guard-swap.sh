# Gives the programs of a bench a limit of memory, and swap: guard-swap NAME FILE [AREA].
#
# Prints the control group that it will make, of this name. Then it obeys lines of its input: `none 0 LIMIT`, `swap BYTES
# LIMIT` and `zram BYTES LIMIT` make the group, with no swap, with swap to the new file FILE or to a new zram device; `off`
# undoes this. It answers with a line: `done AREA`, the file or device that is on, or `failed WHY`. The input ends when
# the bench does, in whatever way: everything is undone. AREA is what a guard that was killed left on.
set -f
# A bench that has ended reads no answer (PIPE).
trap '' INT TERM HUP QUIT PIPE
echo -1000 2> /dev/null > /proc/self/oom_score_adj
file=$2 area=${3:-$2} zrams=/sys/class/zram-control

# Prints the root of the control groups with a memory controller, of version 2 or 1.
root() {
    if grep -qsw memory /sys/fs/cgroup/cgroup.controllers; then
        echo +memory > /sys/fs/cgroup/cgroup.subtree_control && echo /sys/fs/cgroup
    elif [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ]; then
        echo /sys/fs/cgroup/memory
    else
        echo "there is no memory controller in /sys/fs/cgroup or /sys/fs/cgroup/memory" >&2
        return 1
    fi
}

# on KIND BYTES LIMIT: switches swap on and makes the group.
on() {
    case $1 in
        swap) (umask 077 && set -C && : > "$area") && fallocate -l "$2" "$area";;
        zram)
            # Kernels without lz4 keep their default.
            (echo lz4 > "/sys/block/${area#/dev/}/comp_algorithm") 2> /dev/null
            echo "$2" > "/sys/block/${area#/dev/}/disksize";;
    esac && { [ "$1" = none ] || { mkswap "$area" && swapon "$area"; }; } && mkdir "$group" || return
    # A kernel without swap accounting lacks the files of swap.
    if [ -e "$group/memory.max" ]; then
        echo "$3" > "$group/memory.max" || return
        [ "$1" != none ] || [ ! -e "$group/memory.swap.max" ] || echo 0 > "$group/memory.swap.max"
    else
        echo "$3" > "$group/memory.limit_in_bytes" || return
        [ "$1" != none ] || [ ! -e "$group/memory.memsw.limit_in_bytes" ] ||
            { echo "$3" > "$group/memory.memsw.limit_in_bytes" && echo 0 > "$group/memory.swappiness"; }
    fi
}

# Kills the processes of the group, removes it, and switches off and removes the swap area, whatever there is of them.
off() {
    tries=0
    while [ -d "$group" ] && [ $((tries += 1)) -le 4000 ]; do
        for process in $(cat "$group/cgroup.procs"); do kill -KILL "$process" 2> /dev/null; done
        rmdir "$group" 2> /dev/null || sleep 0.005
    done
    [ "$area" ] || return 0
    why=$(swapoff "$area" 2>&1)
    if grep -qF "$area " /proc/swaps; then
        echo "largesse bench: swap is still on: $why. Type: swapoff $area" >&2
        return
    fi
    case $area in
        /dev/zram*)
            id=${area#/dev/zram} tries=0
            # Programs that look at new devices keep it busy for a moment.
            while [ -e "/sys/block/zram$id" ] && [ $((tries += 1)) -le 200 ]; do
                (echo 1 > "/sys/block/zram$id/reset" && echo "$id" > $zrams/hot_remove) 2> /dev/null || sleep 0.01
            done
            [ ! -e "/sys/block/zram$id" ] ||
                echo "largesse bench: $area is still there. Type: echo $id > $zrams/hot_remove" >&2;;
        *) rm -f "$area";;
    esac
    area=
}

if root=$(root 2>&1); then group=$root/$1; else echo "failed" $root; exit 1; fi
echo "done $group"
while read -r kind bytes limit; do
    off
    case $kind in
        swap) area=$file;;
        zram) area=/dev/zram$(cat $zrams/hot_add);;
    esac
    if [ "$kind" = off ] || why=$(on "$kind" "$bytes" "$limit" 2>&1 > /dev/null); then
        echo "done $area"
    else
        off
        echo "failed" $why
    fi
done
off
