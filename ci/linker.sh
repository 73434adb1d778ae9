#!/usr/bin/env bash
# Can the C compiler build a program? cargo links with it, and finds out only after minutes of compiling.
set -euo pipefail
builds() {
    command -v cc >/dev/null && printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | cc -x c -o /dev/null - 2>&1
}
builds >/dev/null && exit 0
echo "The C compiler cannot build a program: gcc or the C library's libc6-dev is missing."
"$(dirname "$0")/need.sh" gcc libc6-dev
if ! why=$(builds); then
    printf 'cc still cannot build a program:\n%s\n' "${why:-there is no cc}" >&2
    exit 1
fi
