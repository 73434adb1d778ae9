#!/usr/bin/env bash
# Unit tests and a few whole programs that need neither root, a network nor an installed package. The same code as
# the full run (test.sh), for fewer tests.
set -euo pipefail
cd "$(dirname "$0")/.."
crates=(agent arena malloc pages plot policy random report settings store terminal text tests)
whole=(layers links settings odd_requests)
exec ci/test.sh --lib "${crates[@]/#/--package=largesse-}" "${whole[@]/#/--test=}"
