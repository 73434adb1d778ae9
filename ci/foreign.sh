#!/usr/bin/env bash
# Test suites of other projects, with and without Largesse: what they print must be the same. Parts of those of CPython,
# NumPy, SciPy and pandas; queries to a PostgreSQL server, a Redis server's data, and numerical programs of NPB's kinds;
# and programs that use NumPy, pandas, SciPy, scikit-learn and Polars in one process, each in its newest version.
# foreign.sh [SUITE...]; without names, all but numpy_whole. More than an hour. numpy_whole: all tests of the newest
# NumPy with and without the handler, twice a quarter of an hour. NPB itself: NPB=FOLDER with its programs, built, of any
# class (bin/cg.S.x). PyTorch, whose packages have gigabytes: PACKAGES=torch.
set -euo pipefail
cd "$(dirname "$0")/.."
ci/need.sh python3-venv libpython3.11-testsuite postgresql-15 redis-server
largesse=$PWD/target/release/largesse
folder=$(mktemp -d /var/tmp/largesse-foreign.XXXXXX)
chmod 755 "$folder"
mkdir -m 1777 "$folder/scratch"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$folder"' EXIT
failed=()

# How each suite runs: without Largesse, on large pages, with NumPy's handler replaced in a Python that was started as
# usual, and with far memory under both ways to receive faults.
modes=(${MODES:-alone pages handler far thread})
launcher() { # MODE: sets `launch`
    case $1 in
    alone) launch=() ;;
    pages) launch=("$largesse" run --) ;;
    handler) launch=(env "PYTHONPATH=$PWD/fronts/python:$PWD/fronts/python/tests" PYTEST_PLUGINS=large_arrays
        "LARGESSE_LIBRARY=$PWD/target/preload/liblargesse.so") ;;
    far) launch=("$largesse" run --local 256M --far "file:$folder/scratch/store" --) ;;
    thread) launch=("$largesse" run --local 256M --far "file:$folder/scratch/store" --fault-engine thread --) ;;
    esac
}

# compare SUITE: its function prints what must be the same, and starts programs by "${launch[@]}". Its first command that
# fails ends it, hence the shell of its own: bash ignores `set -e` inside conditions.
compare() {
    local suite=$1 mode launch status
    for mode in "${modes[@]}"; do
        case $mode:$suite in
        alone:* | handler:numpy | handler:numpy_whole | handler:scipy | handler:pandas) ;;
        handler:* | *:numpy_whole | *:libraries) continue ;;
        esac
        launcher "$mode"
        echo "== $suite, $mode"
        set +e
        (set -e; "$suite" > "$folder/$suite.$mode" 2> "$folder/$suite.$mode.log")
        status=$?
        set -e
        if [ $status -ne 0 ]; then
            echo "$suite, $mode: it ended with $status"; tail -n 20 "$folder/$suite.$mode.log" "$folder"/*server.log
            failed+=("$suite:$mode")
        elif ! [ -s "$folder/$suite.$mode" ]; then
            echo "$suite, $mode: it printed nothing, so nothing was compared"
            failed+=("$suite:$mode")
        elif ! diff "$folder/$suite.alone" "$folder/$suite.$mode"; then
            failed+=("$suite:$mode")
        fi
    done
}

cpython() {
    local tests=(test_array test_bytes test_buffer test_bigmem test_bisect test_codecs test_collections test_ctypes
        test_deque test_dict test_exceptions test_faulthandler test_fork1 test_functools test_gc test_generators test_gzip
        test_heapq test_io test_itertools test_json test_list test_long test_lzma test_marshal test_math test_memoryio
        test_memoryview test_mmap test_multiprocessing_fork test_os test_pickle test_posix test_queue test_random test_re
        test_selectors test_set test_signal test_socket test_sqlite3 test_statistics test_string test_struct test_subprocess
        test_tempfile test_thread test_threading test_tuple test_unicode test_weakref test_zipfile test_zlib)
    # The list of tests by how they ended, and no times. Tests of VSOCK wait for ever in a guest whose host does not answer.
    # test_pass_fds_redirected counts all descriptors: with the engine `thread` there is one more, which docs/fault-engines.md
    # names.
    { timeout 1500 "${launch[@]}" /usr/bin/python3.11 -m test --timeout 300 --ignore '*VSOCK*' \
        --ignore '*test_pass_fds_redirected' "${tests[@]}" 2>&1 || true; } |
        tee "$folder/cpython-server.log" |
        sed -n '/^== Tests result/,$p' | grep -vE '^Total duration|^Tests result' > "$folder/all" || true
    [ -s "$folder/all" ] && cat "$folder/all"
}

venv() {
    [ -e target/foreign/done ] && return
    rm -rf target/foreign
    /usr/bin/python3.11 -m venv target/foreign
    target/foreign/bin/pip install -q numpy==2.2.6 scipy==1.15.3 pandas==2.2.3 pytest hypothesis pytz
    touch target/foreign/done
}

newest() {
    [ -e target/newest/done ] || { rm -rf target/newest && /usr/bin/python3.11 -m venv target/newest; }
    target/newest/bin/pip install -q numpy pandas scipy scikit-learn polars pytest hypothesis meson ninja ${PACKAGES:-}
    touch target/newest/done
}

suite_of() { # PATTERN...: the tests of installed modules, by how they ended
    { timeout ${limit:-1500} "${launch[@]}" "${python:-target/foreign/bin/python}" -m pytest -q --tb=no -rfE -p no:cacheprovider -W ignore \
        --pyargs "$@" 2>&1 || true; } | grep -E '^(FAILED|ERROR)|passed' | sed -E 's/ in [0-9.]+s.*//; s/, [0-9]+ warnings?//; s/ - .*//' | sort
}
numpy() { suite_of numpy._core.tests.test_multiarray numpy._core.tests.test_mem_overlap numpy._core.tests.test_umath numpy.linalg numpy.fft numpy.lib.tests.test_io; }
# Some tests compile extension modules, for which they look for meson in PATH, and some are skipped if less memory is
# free than they need, which is to be the same each time. The two that are left out ask for the name of NumPy's own
# handler.
numpy_whole() {
    local policy=_core/tests/test_mem_policy.py
    PATH=$PWD/target/newest/bin:$PATH NPY_AVAILABLE_MEM=4GB limit=5400 python=target/newest/bin/python suite_of numpy \
        --deselect $policy::test_default_policy_singleton --deselect $policy::test_context_locality
}
scipy() { suite_of scipy.fft scipy.linalg.tests.test_decomp scipy.sparse.tests.test_base scipy.ndimage.tests.test_filters; }
pandas() { suite_of pandas.tests.frame.test_reductions pandas.tests.groupby.test_groupby pandas.tests.reshape.merge pandas.tests.io.test_pickle; }

# The module's own tests, in which each library computes without and with the handler, and then all in one process.
libraries() {
    local folders=$PWD/fronts/python:$PWD/fronts/python/tests library=$PWD/target/preload/liblargesse.so
    PYTHONPATH=$folders LARGESSE_LIBRARY=$library target/newest/bin/python -m unittest -v test_libraries 2>&1 |
        tee "$folder/libraries-server.log" | grep -E ' \.\.\. '
    ! grep -v '^test_torch' "$folder/libraries-server.log" | grep -E ' \.\.\. (skipped|FAIL|ERROR)'
}

postgres() {
    local bin=/usr/lib/postgresql/15/bin data=$folder/postgres as=()
    rm -rf "$data" && mkdir -p "$data"
    [ "$(id -u)" -ne 0 ] || { chown postgres "$data"; as=(setpriv --reuid=postgres --regid=postgres --clear-groups); }
    "${as[@]}" "$bin/initdb" -D "$data" -A trust > "$folder/log"
    "${as[@]}" "${launch[@]}" "$bin/postgres" -D "$data" -k "$data" -c listen_addresses= -c fsync=off > "$data-server.log" 2>&1 &
    local server=$!
    for _ in $(seq 300); do "$bin/pg_isready" -q -h "$data" && break; kill -0 $server; sleep 0.1; done
    # Each connection is a process that the server forks: sorts, hash joins and aggregates, with and without room.
    for memory in 64kB 512MB; do
        "${as[@]}" "$bin/psql" -h "$data" -d postgres -v ON_ERROR_STOP=1 -qAt <<SQL
set work_mem = '$memory';
drop table if exists t;
create table t as select i, (i::bigint * 7919) % 100003 as j, md5(i::text) as word from generate_series(1, 400000) i;
select count(*), sum(j), md5(string_agg(word, '' order by word)) from t;
select count(*), sum(a.i) from t a join t b on a.j = b.i;
select j % 10, count(*), min(word), max(word) from t group by 1 order by 1;
create index on t (word);
select md5(string_agg(i::text, ',')) from (select i from t order by word desc limit 5000) s;
SQL
    done
    kill -INT $server && wait $server
}

redis() {
    local data=$folder/redis
    rm -rf "$data" && mkdir -p "$data"
    "${launch[@]}" redis-server --port 0 --unixsocket "$data/socket" --dir "$data" --save "" --enable-debug-command yes > "$data-server.log" 2>&1 &
    local server=$!
    for _ in $(seq 300); do [ -S "$data/socket" ] && break; kill -0 $server; sleep 0.1; done
    local ask=(redis-cli -s "$data/socket")
    "${ask[@]}" debug populate 200000 key 100
    "${ask[@]}" eval 'for i = 1, 200000 do redis.call("lpush", "list" .. i % 100, i); redis.call("hset", "hash" .. i % 50, i, i * i) end return 1' 0
    "${ask[@]}" setrange large 300000000 x
    "${ask[@]}" debug digest
    # A child writes the snapshot while the parent changes data.
    "${ask[@]}" bgsave > "$folder/log"
    "${ask[@]}" eval 'for i = 1, 100000 do redis.call("hset", "hash" .. i % 50, i, i) end return 2' 0
    for _ in $(seq 600); do [ "$("${ask[@]}" lastsave)" != "$("${ask[@]}" info persistence | sed -n 's/rdb_last_save_time:\([0-9]*\).*/\1/p')" ] || ! "${ask[@]}" info persistence | grep -q rdb_bgsave_in_progress:1 && break; sleep 0.1; done
    "${ask[@]}" info persistence | grep -o rdb_last_bgsave_status:ok
    "${ask[@]}" debug reload
    "${ask[@]}" debug digest
    "${ask[@]}" shutdown nosave
    wait $server
}

programs() {
    for name in cg ft mg; do
        gcc -O2 -fopenmp -Ibenches/programs/c "benches/programs/c/far/$name.c" -o "$folder/$name" -lm
    done
    for program in "$folder"/cg "$folder"/ft "$folder"/mg ${NPB:+"$NPB"/bin/*.x}; do
        echo "${program##*/}"
        timeout 600 "${launch[@]}" "$program" 2>&1 | sed -E 's/"seconds":[^,]*,//' |
            grep -viE 'time|mop|seconds|date|peak_kb' | tail -n 20
    done
}

suites=("$@")
[ $# -gt 0 ] || suites=(cpython numpy scipy pandas libraries postgres redis programs)
for suite in "${suites[@]}"; do
    case $suite in
    numpy | scipy | pandas) venv ;;
    numpy_whole | libraries) newest ;;
    esac
    compare "$suite"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "differs: ${failed[*]}" >&2
    exit 1
fi
echo "the same with and without Largesse: ${suites[*]}"
