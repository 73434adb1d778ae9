#!/usr/bin/env bash
# check.sh TREE: fails if a program or library of a tree (tree.sh) needs a newer C library than glibc 2.28, or a library
# that not every system has, if it is not stripped, or if liblargesse.so lacks versions. GLIBC names another version.
set -euo pipefail
tree=$1 most=${GLIBC:-2.28}
wrong=0
say() {
    echo "check: $*" >&2
    wrong=1
}
for file in "$tree"/bin/* "$tree"/lib/largesse/*.so; do
    newest=$(readelf -VW "$file" | grep -o 'GLIBC_[0-9.]*' | cut -d_ -f2 | sort -uV | tail -n 1)
    [ "$(printf '%s\n' "$newest" "$most" | sort -V | tail -n 1)" = "$most" ] || say "$file needs glibc $newest"
    for needed in $(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case $needed in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | libutil.so.1 | ld-linux-*.so.*) ;;
        libgcc_s.so.1) ;; # every system with a compiled program has it
        libmpi.so.40 | libmpich.so.12) [[ $file = */liblargesse-* ]] || say "$file needs $needed" ;;
        *) say "$file needs $needed" ;;
        esac
    done
    ! readelf -SW "$file" | grep -qE ' \.(symtab|debug_info) ' || say "$file is not stripped"
done
versions=$(readelf -VW "$tree/lib/largesse/liblargesse.so")
[ "$most" != 2.28 ] || grep -q LARGESSE_ <<< "$versions" || say "liblargesse.so has no versions (liblargesse.map)"
exit $wrong
