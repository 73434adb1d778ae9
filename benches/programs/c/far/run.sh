#!/bin/sh
# Compiles a program of this folder once and executes it: run.sh NAME [ARGS...]
set -eu
here=$(dirname "$0"); name=$1; shift
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/largesse-bench/far
mkdir -p "$cache"
built=$cache/$name
if [ ! -x "$built" ] || [ -n "$(find "$here/$name.c" "$here"/*.h "$here/../measure.h" -newer "$built")" ]; then
    # The compiler runs without the preloaded library. Without -ffast-math, programs can check their results closely.
    env -u LD_PRELOAD ${CC:-cc} -O2 -march=native -o "$built.$$" "$here/$name.c" -lm
    mv "$built.$$" "$built"
fi
exec "$built" "$@"
