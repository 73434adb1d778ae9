#!/usr/bin/env bash
# No two files of a crate use each other, directly or through others. `ci/circles.py --edges FOLDER` shows the uses.
set -euo pipefail
cd "$(dirname "$0")/.."
ci/circles.py
