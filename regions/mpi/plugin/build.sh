#!/usr/bin/env bash
# build.sh FOLDER: a plug-in for each MPI library whose compiler is here (apt-get install libopenmpi-dev
# libmpich-dev). Another compiler: MPICC=/opt/mpi/bin/mpicc build.sh FOLDER.
set -euo pipefail
folder=$1
source=$(dirname "$0")/plugin.c
mkdir -p "$folder"
built="  "
for compiler in ${MPICC:-mpicc.openmpi mpicc.mpich mpicc}; do
    command -v "$compiler" > /dev/null || continue
    family=$(printf '#include <mpi.h>\n#ifdef OPEN_MPI\nopenmpi\n#elif defined MPICH_NAME || defined I_MPI_NUMVERSION\nmpich\n#endif\n' |
        "$compiler" -x c -E -P - 2> /dev/null | grep -xE 'openmpi|mpich' || true)
    case "$built" in *" $family "*) continue ;; esac # also when it is neither
    plugin=$folder/liblargesse-$family.so
    if [ ! "$plugin" -nt "$source" ] || [ ! "$plugin" -nt "${source%.c}.h" ]; then
        "$compiler" -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -o "$plugin" "$source"
    fi
    built="$built$family "
done
[ "$built" != "  " ] || echo "no MPI compiler here: mpi: stores are not built (apt-get install libopenmpi-dev libmpich-dev)"
