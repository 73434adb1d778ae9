#!/usr/bin/env bash
# A machine of four NUMA nodes under software emulation: no right, no KVM and no such hardware is needed.
# boot.sh KERNEL DISK: the console goes to standard output; /init of the disk (ext4) is run.
# A node has one processor and 384 MiB; neighbours are at distance 16, the one opposite at 22, as in the HA8000.
set -euo pipefail
kernel=$1 disk=$2
nodes=() distances=()
for node in 0 1 2 3; do
    nodes+=(-object "memory-backend-ram,id=memory$node,size=384M" -numa "node,nodeid=$node,cpus=$node,memdev=memory$node")
    for other in 0 1 2 3; do
        case $(((other - node + 4) % 4)) in 0) distance=10 ;; 2) distance=22 ;; *) distance=16 ;; esac
        distances+=(-numa "dist,src=$node,dst=$other,val=$distance")
    done
done
# The disk is an NVMe one: drivers for it and for ext4 are in the cloud kernel itself. Writes go to a temporary file.
exec qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 4,sockets=4 -m 1536M "${nodes[@]}" "${distances[@]}" \
    -nodefaults -display none -serial stdio -no-reboot -snapshot \
    -drive "file=$disk,format=raw,if=none,id=disk" -device nvme,drive=disk,serial=largesse \
    -kernel "$kernel" -append "console=ttyS0 quiet panic=-1 root=/dev/nvme0n1 rw init=/init mitigations=off no_timer_check"
