#!/usr/bin/env bash
# Writes the files from which a topology is read, below ROOT (/ by default), as one text: `save.sh [ROOT] > NAME.tree`.
# A line is a path, a tab and the file's contents; `{0-3}` in a path stands for each of these numbers. Numbers of processors
# and nodes are folded so that a hundred processors are readable; `tests/saved.rs` unfolds them.
set -euo pipefail
cd "${1:-/}"
# Files that other programs saved may end with a zero.
text() { tr -d '\0' < "$1"; }
{
    for file in sys/devices/system/{cpu,node}/{online,possible,has_memory,has_cpu} sys/devices/cpu_{core,atom,lowpower}/cpus proc/meminfo; do
        [ -r "$file" ] && printf '%s\t%s\n' "$file" "$(text "$file" | grep -E '^(MemTotal|MemFree)|^[0-9]' | paste -sd '|')"
    done
    for node in sys/devices/system/node/node[0-9]*; do
        for file in "$node"/{cpumap,distance,meminfo,memory_side_cache/index1/{size,line_size,indexing,write_policy}}; do
            [ -r "$file" ] && printf '%s\t%s\n' "$file" "$(text "$file" | grep -E 'MemTotal|MemFree|^[0-9a-f]' | paste -sd '|')"
        done
    done
    for cpu in sys/devices/system/cpu/cpu[0-9]*; do
        for file in "$cpu"/{online,cpu_capacity,cpufreq/cpuinfo_max_freq} "$cpu"/topology/{core_cpus,package_cpus,die_cpus,thread_siblings,core_siblings,core_id,physical_package_id,die_id} \
            "$cpu"/cache/index*/{level,type,size,shared_cpu_map,coherency_line_size,ways_of_associativity,number_of_sets}; do
            [ -r "$file" ] && printf '%s\t%s\n' "$file" "$(text "$file")"
        done
    done
} 2>/dev/null | awk -F '\t' '
    # Lines that differ only in the number of the processor are merged.
    {
        if (match($1, /cpu[0-9]+\//)) {
            number = substr($1, RSTART + 3, RLENGTH - 4)
            key = substr($1, 1, RSTART + 2) "\t" substr($1, RSTART + RLENGTH - 1) "\t" $2
        } else { number = ""; key = $1 "\t\t" $2 }
        if (!(key in numbers)) order[++count] = key
        numbers[key] = numbers[key] " " number
    }
    function ranges(text,    n, list, i, j, swap, out) {
        n = split(text, list, " ")
        for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) { swap = list[j]; list[j] = list[j - 1]; list[j - 1] = swap }
        out = ""
        for (i = 1; i <= n; i = j) {
            for (j = i + 1; j <= n && list[j] + 0 == list[j - 1] + 1; j++);
            out = out (out == "" ? "" : ",") list[i] (j - i > 1 ? "-" list[j - 1] : "")
        }
        return out
    }
    END {
        for (i = 1; i <= count; i++) {
            split(order[i], part, "\t")
            folded = ranges(numbers[order[i]])
            if (folded ~ /[-,]/) folded = "{" folded "}"
            print part[1] folded part[2] "\t" part[3]
        }
    }'
