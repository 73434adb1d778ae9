#!/usr/bin/env bash
# conda.sh ARCHIVE PREFIX: makes the conda package of an archive by its recipe, in a channel of this machine, and
# installs it from there into the environment PREFIX. Asks no other channel: the recipe needs nothing but the system.
# The builder and the installer (py-rattler-build, py-rattler) come from PyPI.
set -euo pipefail
archive=$(realpath "$1") prefix=$(realpath -m "$2")
cd "$(dirname "$0")"
tools=${CARGO_TARGET_DIR:-$PWD/../target}/conda-tools
[ -x "$tools/bin/pip" ] || python3 -m venv "$tools"
"$tools/bin/pip" install -q py-rattler-build==0.73.0 py-rattler==0.28.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(basename "$archive")
version=${version#largesse-}
export ARCHIVE=$archive VERSION=${version%%-linux-*}
"$tools/bin/python" - "$work" "$prefix" > "$work/log" 2>&1 << 'END' || { tail -20 "$work/log" >&2; exit 1; }
import asyncio, os, sys
from rattler import Channel, Platform, install, solve
from rattler.index import index_fs
from rattler_build.cli_api import build_recipes

work, prefix = sys.argv[1:]
channel = work + "/channel"
build_recipes(["conda/recipe.yaml"], channel=[], output_dir=channel, test="skip")


async def put():
    await index_fs(channel)
    platforms = [Platform.current(), Platform("noarch")]
    await install(await solve([Channel("file://" + channel)], ["largesse"], platforms=platforms), prefix)


asyncio.run(put())
# The threads of rattler sometimes abort Python while it ends, after the work is done.
sys.stdout.flush()
os._exit(0)
END
