#!/usr/bin/env bash
# How many files of the pager one has to open to follow one fault with an eviction: at most 20, none entered more than
# twice. gdb traces all calls inside `regions/pager/src` while the test `fault_path` serves a fault, once with
# transfers that end at once and once with transfers in flight. The test calls what the pager's threads call, over a
# simulated kernel: `engine.rs`, `kernel/linux.rs` and `staging.rs` are not in the trace, nor are the crates below.
#
# - A file is passed if one of its functions is called. A closure is part of the function that has it. Functions that
#   the compiler derives do not count: there is nothing to read.
# - A function stays if no call leads from it to another file, be it through other functions of its file.
# - A call is a detour if its function stays, or calls only functions of other files that stay: a counter, an entry of
#   the page table, the size of a transfer unit. Control goes one file further at most, and comes straight back.
# - A file is entered at the first call of each function, unless the call is a detour, or the file is open: a function
#   of it is among the callers.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! gdb -nx -batch -ex 'python print(1)' > /dev/null 2>&1; then
    echo "fault-path: needs gdb with Python: apt-get install gdb" >&2
    exit 1
fi
# Its own target folder, since other debug information would make Cargo build everything again each time.
built=$(CARGO_PROFILE_DEV_DEBUG=full cargo test -p largesse-pager --test fault_path --no-run \
    --target-dir "${CARGO_TARGET_DIR:-target}/fault-path" 2>&1) || { echo "$built" >&2; exit 1; }
program=$(sed -n 's/.*Executable.*(\(.*\))$/\1/p' <<< "$built")
status=0
for test in fault_with_transfers_that_end_at_once fault_with_transfers_in_flight; do
    echo "$test:"
    gdb -nx -batch -x ci/fault-path.py --args "$program" --exact "$test" --test-threads 1 2> /dev/null |
        sed -n '/^[0-9]* files/,$p' || status=1
done
exit $status
