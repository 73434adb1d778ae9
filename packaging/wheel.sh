#!/usr/bin/env bash
# Builds the Python wheel with the command, the library and the module into a folder (by default dist), and prints its
# path. LIBRARY and COMMAND name other builds than those of `make`, such as those for an older C library;
# liblargesse_pin.so lies in the folder of LIBRARY. Needs Python 3 and binutils.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../dist}")
cd "$(dirname "$0")/.."
exec python3 fronts/python/wheel.py "$folder"
