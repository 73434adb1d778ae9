#!/bin/sh
# Installs Largesse below a prefix, or removes it. Neither root nor a compiler is needed.
#
#   ./install.sh [PREFIX]              installs the tree beside this file below PREFIX (default: ~/.local)
#   PREFIX/share/largesse/uninstall    removes every file and folder that this made, and nothing else
#
# With DESTDIR=FOLDER, PREFIX is below FOLDER.
set -eu

list=share/largesse/installed
fail() {
    echo "largesse: $*" >&2
    exit 1
}

# Removes what the list below $1 names. Folders come before their contents there, so it is read backwards.
remove() {
    named=$(sed '1!G;h;$!d' "$1/$list")
    printf '%s\n' "$named" | while IFS= read -r name; do
        case $name in
        ./) rmdir "$1" 2> /dev/null || true ;; # others use it, too
        */) rmdir "$1/$name" 2> /dev/null || true ;;
        *) rm -f "$1/$name" ;;
        esac
    done
}

case $0 in
*/uninstall)
    here=$(cd "$(dirname "$0")/../.." && pwd)
    [ -w "$here/$list" ] || fail "$here cannot be changed by $(id -un): uninstall as the user who installed it"
    remove "$here"
    echo "largesse: removed from $here"
    exit ;;
esac

tree=$(cd "$(dirname "$0")" && pwd)
prefix=${1:-${HOME:?there is no HOME: name a prefix}/.local}
case $prefix in
/*) ;;
*) fail "the prefix must begin with /, as in: $0 /opt/largesse" ;;
esac
to=${DESTDIR:-}$prefix
"$tree/bin/largesse" --version > /dev/null 2>&1 ||
    fail "the programs of this archive do not run here ($(uname -m)," \
        "$(getconf GNU_LIBC_VERSION 2> /dev/null || echo 'no GNU C library'))." \
        "They need glibc 2.28 or later and the processor in the archive's name."

[ ! -e "$to/$list" ] || remove "$to" # an earlier version
new= # in this order: folders before their contents
if [ ! -d "$to" ]; then
    mkdir -p "$to" || fail "$to cannot be made: name a prefix that $(id -un) may write, as in: $0 ~/.local"
    new=./
fi
[ -w "$to" ] || fail "$(id -un) may not write to $to: name another prefix, as in: $0 ~/.local"
names=$(cd "$tree" && find bin include lib share \( -type d -exec printf '%s/\n' {} \; \) -o -print | LC_ALL=C sort)
for name in $names; do
    case $name in
    */) [ -d "$to/$name" ] || new="$new
$name" ;;
    *)
        [ ! -e "$to/$name" ] ||
            fail "$to/$name is there, and not from this installer: remove it first (pip uninstall largesse?)"
        new="$new
$name" ;;
    esac
done
# The list comes first, so that an installation that was interrupted can be removed.
mkdir -p "$to/share/largesse"
printf '%s\n' "$new" share/largesse/uninstall $list | sed '/^$/d' > "$to/$list"
(cd "$tree" && tar -cf - bin include lib share) | (cd "$to" && tar --no-same-owner -xf -)
cp "$tree/install.sh" "$to/share/largesse/uninstall"
chmod 755 "$to/share/largesse/uninstall"

echo "largesse: installed below $to; to remove it: $to/share/largesse/uninstall"
case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) [ -n "${DESTDIR:-}" ] || echo "largesse: $prefix/bin is not in PATH; type: export PATH=$prefix/bin:\$PATH" ;;
esac
