#!/usr/bin/env bash
# The Python module, installed from its wheel: its tests in a session that was started as usual, under `largesse run`,
# and as a user without any right; its types by mypy, where pip can install it. PYTHON names another interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import venv, ensurepip' 2> /dev/null; then
    echo "skipped: no $python with venv (apt-get install python3-venv)"
    exit 0
fi
cargo build --profile preload -p largesse-preload -p largesse-pin
cargo build --release -p largesse-cli -p largesse-lisp-command -p largesse-bench
folder=$(mktemp -d /var/tmp/largesse-python.XXXXXX)
chmod 755 "$folder"
trap 'rm -rf "$folder"' EXIT
wheel=$(packaging/wheel.sh "$folder/wheel")
cmp "$wheel" "$(packaging/wheel.sh "$folder/again")"
# The system's packages, because NumPy and others are installed there.
"$python" -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/pip" install -q --no-index --no-deps --force-reinstall "$wheel"
# The tests without the module, which is to be the installed one; every user may read them.
cp --parents -r fronts/python/tests fronts/preload/include docs/python.md "$folder"
export PYTHONDONTWRITEBYTECODE=1 WHEEL=$wheel

tests() { # NAME WORD...: runs the tests by a command, and keeps what they print
    local name=$1
    shift
    (cd "$folder/fronts/python/tests" && "$@" "$folder/venv/bin/python" -m unittest -q) > "$folder/$name.log" 2>&1
}
# All at once: most of their time they wait for programs that they start.
declare -A passes
tests usual & passes[usual]=$!
tests run "$folder/venv/bin/largesse" run -- & passes[run]=$!
if [ "$(id -u)" = 0 ]; then
    tests nobody setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs env HOME=/nonexistent & passes[nobody]=$!
else
    echo "skipped: only root can become an unprivileged user; the current one is one"
fi
status=0
for name in "${!passes[@]}"; do
    wait "${passes[$name]}" || status=$?
    echo "== the tests of the Python module, $name"
    cat "$folder/$name.log"
done
[ $status -eq 0 ] || exit $status

if ! command -v mypy > /dev/null && ! [ -x target/python-tools/bin/mypy ]; then
    "$python" -m venv target/python-tools
    target/python-tools/bin/pip install -q mypy numpy 2> /dev/null || rm -rf target/python-tools
fi
PATH=$PWD/target/python-tools/bin:$PATH
if command -v mypy > /dev/null; then
    (cd fronts/python && mypy --cache-dir "$folder/mypy")
else
    echo "skipped: no mypy, and pip cannot install it"
fi
