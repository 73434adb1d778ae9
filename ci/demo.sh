#!/usr/bin/env bash
# `make demo`, about a minute on two processors: R on large pages, with stock R and other allocators, then R with more
# data than it may keep in memory. Exits with 1 if an answer differs. demo.sh [FOLDER FOR THE REPORT].
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
folder=${1:-$target/demo}
data=256 local=96 # MiB
PATH=$(realpath "$target/release"):$PATH
mkdir -p "$folder"

printf '\n1. R on large pages. Times are divided by those of stock R: below 1 is faster. Every answer is compared.\n\n'
largesse bench r --peers --only arrays --scale 0.25 --runs 3

TIMEFORMAT='   after %1R s'
printf '\n2. R with %s MiB of vectors, all in memory:\n\n' $data
time all=$(Rscript --vanilla docs/examples/larger.R $data)
echo "   $all"

printf '\n3. The same with at most %s MiB of them in memory, the others in a file (largesse run --local %sM):\n\n' $local $local
time bounded=$(largesse run --local ${local}M --report "$folder/far.json" -- Rscript --vanilla docs/examples/larger.R $data)
echo "   $bounded"
[ "$all" = "$bounded" ] || { echo "The answers differ: this is a bug." >&2; exit 1; }
echo
largesse report "$folder/far.json"
printf '\nThe same answer, to the last bit. A picture of this run: %s/far.svg\nNext: README.md\n' "$folder"
