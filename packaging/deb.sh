#!/usr/bin/env bash
# deb.sh TREE FOLDER: makes the Debian packages of a tree (tree.sh): largesse, largesse-mpi, largesse-lisp and
# largesse-bench. Files that no other package has are in the first. Their dates are SOURCE_DATE_EPOCH.
set -euo pipefail
tree=$(realpath "$1") folder=$(realpath "$2")
version=$("$tree/bin/largesse" --version | awk '{print $2}')
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
maintainer="The Largesse authors <largesse-project@users.noreply.github.com>"

# take PACKAGE PATH...: moves files of the tree, below usr/, into a package.
cp -a "$tree" "$work/usr"
rm -f "$work/usr/install.sh"
take() {
    local package=$1 path
    shift
    for path in "$@"; do
        mkdir -p "$work/$package/usr/$(dirname "$path")"
        mv "$work/usr/$path" "$work/$package/usr/$path"
    done
}

# pack PACKAGE DEPENDS < DESCRIPTION: writes the package. The first line of the description is its title.
pack() {
    local package=$1 depends=$2 root=$work/$1 doc=$work/$1/usr/share/doc/$1
    mkdir -p "$root/DEBIAN" "$doc"
    find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} + 2> /dev/null || true
    {
        printf 'Largesse\nLicence: MIT or Apache-2.0, at your choice.\n\n'
        cat "$tree/share/doc/largesse/LICENSE-MIT"
        echo
        cat "$tree/share/doc/largesse/LICENSE-APACHE"
    } > "$doc/copyright"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$package" "$version" "$architecture"
        printf 'Maintainer: %s\nInstalled-Size: %s\n' "$maintainer" "$(size "$root/usr")"
        printf 'Depends: %s\nSection: science\nPriority: optional\n' "$depends"
        [ "$package" != largesse ] || printf 'Suggests: largesse-lisp, largesse-bench, largesse-mpi\n'
        printf 'Homepage: https://github.com/largesse-project/largesse\nDescription: '
        sed '2,$s/^/ /'
    } > "$root/DEBIAN/control"
    (cd "$root" && find usr -type f | sort | xargs md5sum > DEBIAN/md5sums)
    chmod -R u=rwX,go=rX "$root"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    # With one thread the compressed bytes do not depend on the machine.
    dpkg-deb --root-owner-group -Zxz --threads-max=1 -b "$root" \
        "$folder/${package}_${version}_$architecture.deb" > /dev/null
}

# size FOLDER: KiB of the files, on every file system the same.
size() { find "$1" -type f -printf '%s\n' | awk '{ kib += int(($1 + 1023) / 1024) } END { print kib + 0 }'; }

libc='libc6 (>= 2.28)'
same="largesse (= $version), $libc"
plugins=$(cd "$work/usr" && ls lib/largesse/liblargesse-*.so 2> /dev/null || true)
if [ -n "$plugins" ]; then
    take largesse-mpi $plugins
    pack largesse-mpi "$same, libopenmpi3 | libopenmpi40 | libmpich12" << 'END'
far memory of Largesse on other MPI ranks
Lets `mpirun largesse run --far mpi:` keep pages of a program in the memory of
other ranks: one plug-in for Open MPI, one for MPICH.
END
fi

take largesse-lisp bin/largesse-lisp share/man/man1/largesse-lisp.1
pack largesse-lisp "$same" << 'END'
Lisp with a heap that is delegated to threads
A dialect of EusLisp whose threads allocate in parallel: `largesse lisp`.
END

take largesse-bench bin/largesse-bench share/man/man1/largesse-bench.1 share/largesse/benches
pack largesse-bench "$same" << 'END'
comparisons of programs with and without Largesse
Runs programs in turns under several settings, checks that their answers are
equal, and prints times with their spread: `largesse bench`.
END

mkdir -p "$work/usr/share/zsh"
mv "$work/usr/share/zsh/site-functions" "$work/usr/share/zsh/vendor-completions" # where Debian's zsh looks
rm "$work"/usr/share/doc/largesse/LICENSE-*
gzip -9n "$work/usr/share/doc/largesse/CHANGELOG.md"
mkdir "$work/largesse"
mv "$work/usr" "$work/largesse/usr"
pack largesse "$libc" << 'END'
large pages, far memory and placement for numerical programs
Starts unmodified R, Python, C and Fortran programs with their large blocks on
large pages, in less memory than they need, or on chosen NUMA nodes, and shows
which pages each block has.
END
