#!/bin/sh
# Compiles a program of this folder once and executes it: run.sh NAME [ARGS...]
set -eu
here=$(dirname "$0"); name=$1; shift
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/largesse-bench
mkdir -p "$cache"
built=$cache/$name
if [ ! -x "$built" ] || [ "$here/$name.c" -nt "$built" ]; then
    # The compiler is not part of the comparison, so it runs without the preloaded library.
    env -u LD_PRELOAD ${CC:-cc} -O3 -march=native -ffast-math -o "$built.$$" "$here/$name.c" -lm
    mv "$built.$$" "$built"
fi
exec "$built" "$@"
