#!/usr/bin/env bash
# test.sh DIST [FORMAT...]: installs each package of the folder DIST into bare trees of Debian 12 and 13, as root and as
# an ordinary user, and prints a table formats x systems, as packaging/README.md has it. Formats: deb tar mpi r wheel conda
# spack; without names, all, and spack where this machine has what spack.sh needs. Needs root and debootstrap. The trees
# are kept in TREES (default: /var/tmp/largesse-trees) for the next time. SUITES names one system (bookworm, trixie),
# MIRROR a mirror of Debian, LIMIT the seconds that a step may take.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "test-dist: chroot needs root: sudo make test-dist" >&2; exit 1; }
# Mounts end with this script.
[ "${1:-}" = --unshared ] || exec unshare -m --propagation private "$0" --unshared "$@"
shift
dist=$(realpath "$1")
shift
formats=("$@")
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
    formats=(deb tar mpi r wheel conda)
    if why=$(packaging/spack.sh --why-not); then formats+=(spack); else echo "spack: skipped: $why" >&2; fi
fi
trees=${TREES:-/var/tmp/largesse-trees} mirror=${MIRROR:-http://deb.debian.org/debian}
work=$(mktemp -d -p /var/tmp largesse-dist.XXXXXX)
trap 'cd /; umount -R "$work/root" 2> /dev/null || true; rm -rf "$work"' EXIT
failed=0

# Makes the bare tree of a suite, once.
bare() {
    [ -e "$trees/$1.made" ] && return
    ci/need.sh debootstrap
    mkdir -p "$trees"
    rm -rf "${trees:?}/$1"
    debootstrap --variant=minbase "$1" "$trees/$1" "$mirror" > "$trees/$1.log" 2>&1 ||
        { tail -3 "$trees/$1.log" >&2; exit 1; }
    cp /etc/resolv.conf "$trees/$1/etc/"
    echo 'Acquire::Check-Valid-Until "false"; APT::Sandbox::User "root";' > "$trees/$1/etc/apt/apt.conf.d/99test"
    chroot "$trees/$1" useradd --create-home --shell /bin/sh ann
    : > "$trees/$1.made"
}

# enter LOWER UPPER: makes a tree at $work/root whose changes go to UPPER.
enter() {
    mkdir -p "$work/root" "$2" "$2.work"
    mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$2.work" "$work/root"
    mount -t proc proc "$work/root/proc"
    mount --rbind /sys "$work/root/sys"
    mount --rbind /dev "$work/root/dev"
}
# A process of a step that ran out of time may still be there.
leave() { umount -R "$work/root" 2> /dev/null || umount -R -l "$work/root"; }

# in_root COMMAND, as_user USER COMMAND: a shell in the tree with a clean environment.
in_root() { as_user root "$1"; }
as_user() {
    local home=/root
    [ "$1" = root ] || home=/home/$1
    chroot --userspec="$1" "$work/root" env -i HOME="$home" USER="$1" LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive PATH="$home/.local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
        timeout "${LIMIT:-600}" sh -ec "cd; umask 022; $2"
}

# with SUITE NAME PACKAGE...: prints the lower folders of a tree with more packages of Debian, which is made once.
with() {
    local suite=$1 name=$2
    shift 2
    if [ $# -gt 0 ] && [ ! -e "$trees/$suite-$name.made" ]; then
        rm -rf "$trees/$suite-$name"
        enter "$trees/$suite" "$trees/$suite-$name"
        in_root "apt-get -qq update; apt-get install -y -qq --no-install-recommends $* > /dev/null; apt-get clean" \
            > "$trees/$suite-$name.log" 2>&1 || { tail -5 "$trees/$suite-$name.log" >&2; exit 1; }
        leave
        : > "$trees/$suite-$name.made"
    fi
    [ $# -eq 0 ] && echo "$trees/$suite" || echo "$trees/$suite-$name:$trees/$suite"
}

# What stays after a removal: every path but those that package managers, logs and caches change.
paths() {
    find "$work/root" -xdev \( -path '*/var/lib/apt' -o -path '*/var/lib/dpkg' -o -path '*/var/cache' \
        -o -path '*/var/log' -o -path '*/tmp' -o -path '*/dist' -o -name __pycache__ -o -path '*/.cache' \) \
        -prune -o -print | sort
}

# A program of the bare tree with large blocks, whose output says whether their contents are right.
program='perl -e '\''my @b = map { chr(65 + $_) x 8_000_000 } 0 .. 15; print unpack("%32C*", $_), "\n" for @b, @b;'\'
declare -A step
# try STEP USER COMMAND: one cell of a row; a later step of a row is left out after a failure.
try() {
    local name=$1
    if [ "${row_ok:-1}" = 0 ]; then step[$name]=-; return; fi
    if as_user "$2" "$3" > "$work/log" 2>&1; then step[$name]=ok; else
        step[$name]=FAILED row_ok=0 failed=1
        { echo "--- $row: $name: $3"; tail -15 "$work/log"; } >&2
    fi
}

# usual USER PREFIX FRONT: doctor, run, far memory with the command of PREFIX, then the front's own command.
usual() {
    local largesse=$2/bin/largesse
    try doctor "$1" "$largesse doctor > /tmp/d || [ \$? = 1 ]; grep -q 'large pages' /tmp/d"
    try run "$1" "$program > /tmp/want; $largesse run --report /tmp/r.json -- $program > /tmp/got
        cmp /tmp/want /tmp/got
        grep -q '\"allocations\": *[1-9]' /tmp/r.json; $largesse pin --threads 0 -- true"
    try far "$1" "$largesse run --local 40M --far file:/tmp/pages --report /tmp/f.json -- $program > /tmp/got
        cmp /tmp/want /tmp/got; grep -q '\"evictions\": *[1-9]' /tmp/f.json"
    try front "$1" "$3"
}

steps=(install doctor run far front remove)
show() {
    printf '| %s | %s |' "$row" "${system[$suite]}"
    for name in "${steps[@]}"; do printf ' %s |' "${step[$name]:--}"; done
    echo
}

# The formats. Each is called with the user for whom it is installed.
deb_install="apt-get install -y /dist/largesse_*.deb /dist/largesse-lisp_*.deb /dist/largesse-bench_*.deb"
lisp="largesse lisp -e '(print (* 6 7))' | grep -qx 42
    largesse bench --list r > /tmp/list; grep -q fifteen /tmp/list"

format_deb() {
    try install root "cp /dist/largesse_*.deb /tmp/wrong.deb; cd /tmp; dpkg-deb -R wrong.deb wrong
        sed -i 's/^Architecture: .*/Architecture: riscv64/' wrong/DEBIAN/control; dpkg-deb -b wrong wrong.deb
        if dpkg -i wrong.deb 2> said; then exit 1; fi
        grep -q 'does not match system' said; rm -rf wrong wrong.deb said"
    try install root "$deb_install"
    usual "$1" /usr "$lisp; test -s /usr/share/man/man1/largesse-run.1.gz"
    try remove root "apt-get purge -y 'largesse*'"
}
format_tar() {
    local prefix=/usr/local
    [ "$1" = root ] || prefix=/home/$1/.local
    try install "$1" "cd /tmp; tar -xzf /dist/largesse-*-linux-*.tar.gz
        ./largesse-*/install.sh $prefix; rm -rf /tmp/largesse-*"
    usual "$1" "$prefix" "$lisp"
    try remove "$1" "$prefix/share/largesse/uninstall"
}
format_mpi() {
    try install root "$deb_install /dist/largesse-mpi_*.deb"
    usual "$1" /usr "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
        mpirun -n 2 largesse run --local 40M --far mpi: -- $program > /tmp/got; cmp /tmp/want /tmp/got"
    try remove root "apt-get purge -y 'largesse*'"
}
format_r() {
    local script='library(largesse); ISM(TRUE); x <- numeric(1e6) + 1; y <- x + 1; stopifnot(NROW(ISM.list()) >= 1)'
    local far='library(largesse); far_memory("64M"); ISM(TRUE); b <- lapply(1:20, function(i) numeric(1e6) + i)
        stopifnot(sum(sapply(b, sum)) == 210e6, ISM.status()$far[["evictions"]] > 0)'
    local library='$HOME/R'
    try install root "$deb_install"
    try install "$1" "mkdir -p $library; R CMD INSTALL -l $library /dist/largesse_*.tar.gz"
    usual "$1" /usr "export R_LIBS=$library; Rscript -e '$script'; Rscript -e '$far'
        largesse run -- Rscript -e '$script'"
    if [ "$1" != root ]; then
        try front "$1" "cd /tmp; export _R_CHECK_FORCE_SUGGESTS_=false LARGESSE_TESTS_NEED_LIBRARY=1 R_LIBS=$library
            R CMD check --no-manual /dist/largesse_*.tar.gz
            if grep -E '^Status:.*(ERROR|WARNING)' largesse.Rcheck/00check.log; then exit 1; fi
            rm -rf largesse.Rcheck"
    fi
    try remove "$1" "R CMD REMOVE -l $library largesse; rmdir $library"
    try remove root "apt-get purge -y 'largesse*'"
}
format_wheel() {
    local venv=/tmp/venv script='import largesse
blocks = [bytes([n]) * 8_000_000 for n in range(1, 17)]
assert sum(block[0] + block[-1] for block in blocks) == 272
assert len(largesse.blocks()) >= 16, largesse.status()'
    try install "$1" "python3 -m venv $venv; $venv/bin/pip install -q --no-index /dist/largesse-*.whl"
    usual "$1" $venv "$venv/bin/python -c 'import largesse; print(largesse.machine()); print(largesse.status())'
        echo '$script' > /tmp/script.py; . $venv/bin/activate; largesse run -- python /tmp/script.py"
    try remove "$1" "$venv/bin/pip uninstall -q -y largesse
        ! ls $venv/lib/python3*/site-packages $venv/bin | grep -i largesse"
}
format_conda() {
    # conda's installer is on this machine; the environment is for the tree.
    [ -d "$work/env" ] || packaging/conda.sh "$dist"/largesse-*-linux-*.tar.gz "$work/env"
    cp -R "$work/env" "$work/root/tmp/env"
    try install "$1" "test -e /tmp/env/conda-meta/history"
    usual "$1" /tmp/env "PATH=/tmp/env/bin:\$PATH; $lisp"
    try remove root "rm -rf /tmp/env"
}
format_spack() {
    # Spack builds on this machine, and the tree gets what it installed.
    [ -d "$work/spack" ] || packaging/spack.sh "$dist"/largesse-*-source.tar.gz "$work/spack"
    cp -R "$work/spack" "$work/root/tmp/spack"
    try install "$1" "test -e /tmp/spack/.spack/spec.json"
    usual "$1" /tmp/spack "PATH=/tmp/spack/bin:\$PATH; $lisp"
    try remove root "rm -rf /tmp/spack"
}

declare -A packages=(
    [deb]='' [tar]='' [mpi]='openmpi-bin' [r]='r-base-core gcc libc6-dev make' [wheel]='python3-venv' [conda]='' [spack]='')
declare -A file=([deb]='largesse_*.deb' [tar]='largesse-*-linux-*.tar.gz' [mpi]='largesse-mpi_*.deb'
    [r]='largesse_*.tar.gz' [wheel]='largesse-*.whl' [conda]='largesse-*-linux-*.tar.gz'
    [spack]='largesse-*-source.tar.gz')
declare -A system=([bookworm]='Debian 12' [trixie]='Debian 13')

printf '| format | system |'
printf ' %s |' "${steps[@]}"
printf '\n|---|---%s\n' '|---|---|---|---|---|---|'
for suite in ${SUITES:-bookworm trixie}; do
    bare "$suite"
    for format in "${formats[@]}"; do
        if ! compgen -G "$dist/${file[$format]}" > /dev/null; then
            echo "$format: ${file[$format]} is not in $dist" >&2
            failed=1
            continue
        fi
        # Words of the list are separate packages.
        lower=$(with "$suite" "$format" ${packages[$format]})
        for user in root ann; do
            row="$format, as $user" row_ok=1 step=()
            rm -rf "$work/upper" "$work/upper.work"
            enter "$lower" "$work/upper"
            mkdir -p "$work/root/dist"
            mount --bind "$dist" "$work/root/dist"
            paths > "$work/before"
            "format_$format" "$user"
            paths > "$work/after"
            if [ "$row_ok" = 1 ] && ! diff "$work/before" "$work/after" > "$work/log"; then
                step[remove]=LEFT failed=1
                head -20 "$work/log" >&2
            fi
            leave
            show
        done
    done
done
[ "$failed" = 0 ] || { echo "test-dist: failed" >&2; exit 1; }
echo "test-dist: every package works: ${formats[*]}" >&2
