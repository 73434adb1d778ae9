#!/usr/bin/env bash
# The hook accepts good messages and refuses bad ones for the right reason.
set -euo pipefail
cd "$(dirname "$0")"
file=$(mktemp)
trap 'rm -f "$file"' EXIT
body=$'\n\nThreads waited for the lock of the owner.\n\nChecked: loom.'
count=0

check() { # WANTED MESSAGE: "" if it is accepted, else a part of the reason
    local said status=0
    printf '%s\n' "$2" > "$file"
    said=$(./commit-msg "$file" 2>&1) || status=$?
    count=$((count + 1))
    case $1 in
    '') [ $status -eq 0 ] || { printf 'hook refused a good message: %s\n%s\n' "$2" "$said" >&2; exit 1; } ;;
    *)
        if [ $status -ne 1 ] || [[ $said != *"$1"* ]]; then
            printf 'hook: wanted "%s" for: %s\nit ended with %s: %s\n' "$1" "$2" $status "$said" >&2
            exit 1
        fi
        ;;
    esac
}

check '' "malloc: Free from another thread without a lock$body"
check '' "gc, lisp: Process finalizers after the pause$body"
for verb in Bring Exceed Embed Access Focus; do check '' "malloc: $verb the bound$body"; done
check '' "$(printf '# a comment of git\n\nci: Add a check of links%s' "$body")"
check '' "$(printf 'docs: %066d' 0 | tr 0 X)$body"
check '' 'Merge branch of another person'
check '' 'fixup! malloc: Free without a lock'
check 'Begin with the layer' "Free from another thread$body"
check 'Begin with the layer' "Malloc: Free from another thread$body"
check 'Begin with the layer' "malloc:Free from another thread$body"
check 'capital letter: "malloc: Free it"' "malloc: free it$body"
check 'imperative' "malloc: Frees blocks$body"
check 'imperative' "malloc: Added a lock$body"
check 'imperative' "malloc: Adding a lock$body"
check 'full stop' "malloc: Free blocks.$body"
check '73 characters' "$(printf 'docs: %067d' 0 | tr 0 X)$body"
check 'second line' $'malloc: Free blocks\nwithout an empty line'
check 'Add a body' 'malloc: Free blocks'
check 'Add a body' $'malloc: Free blocks\n\n# only a comment'
check 'Add a body' $'malloc: Free blocks\n\nSigned-off-by: A <a@example.org>'
check 'Begin with the layer' ''
echo "hooks: commit-msg answers $count messages as it should"
