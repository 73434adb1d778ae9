#!/usr/bin/env bash
# spack.sh ARCHIVE PREFIX: builds the sources in ARCHIVE (largesse-VERSION-source.tar.gz) with Spack's recipe, has Spack
# test what it installed, and copies that to PREFIX. The compiler, make, binutils and Rust are those of this machine; of
# Spack's own packages only its compiler wrapper and the compiler's libraries are installed, below a temporary folder.
#
# spack.sh --why-not: says what is missing and exits with 1, or says nothing.
#
# Needs Spack 1.0 or later: in PATH, or a checkout named by SPACK_ROOT. The packages of Spack itself are in the checkout
# of spack-packages that SPACK_PACKAGES names, or else where Spack is configured to find them; it clones them if they
# are nowhere.
set -euo pipefail
PATH=${SPACK_ROOT:+$SPACK_ROOT/bin:}$PATH

why_not() {
    local program
    command -v spack > /dev/null ||
        { echo "no Spack: put spack into PATH, or name a checkout in SPACK_ROOT"; return 1; }
    for program in git gcc make strip rustc cargo; do
        command -v $program > /dev/null || { echo "the recipe needs $program, which is not in PATH"; return 1; }
    done
    if [ -n "${SPACK_PACKAGES:-}" ] && [ ! -e "$SPACK_PACKAGES/repos/spack_repo/builtin/repo.yaml" ]; then
        echo "SPACK_PACKAGES is no checkout of spack-packages: there is no $SPACK_PACKAGES/repos/spack_repo/builtin"
        return 1
    fi
}
if [ "${1:-}" = --why-not ]; then why_not; exit; fi
why_not >&2

archive=$(realpath "$1") prefix=$(realpath -m "$2")
cd "$(dirname "$0")"
work=$(mktemp -d -p /var/tmp largesse-spack.XXXXXX)
trap 'rm -rf "$work"' EXIT
version=$(basename "$archive" -source.tar.gz)
version=${version#largesse-}

# The recipe builds a tag of a repository.
mkdir "$work/sources"
tar -xzf "$archive" --strip-components=1 -C "$work/sources"
git() { command git -C "$work/sources" -c user.name=test -c user.email=test@localhost "$@"; }
git init -q
git add -A
git commit -q -m "The archive" --no-verify
git tag "v$version"

of() { "$@" --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -1; } # PROGRAM: its version
folder_above() { dirname "$(dirname "$(command -v "$1")")"; } # PROGRAM: the prefix where it is installed
scope=$work/scope
mkdir "$scope"
cat > "$scope/packages.yaml" << END
packages:
  all:
    require: target=$(uname -m)
  largesse:
    package_attributes:
      git: file://$work/sources
  gcc:
    externals:
    - spec: gcc@$(gcc -dumpfullversion) languages=c
      prefix: $(folder_above gcc)
      extra_attributes: {compilers: {c: $(command -v gcc)}}
  gmake:
    buildable: false
    externals: [{spec: gmake@$(of make), prefix: $(folder_above make)}]
  binutils:
    buildable: false
    externals: [{spec: binutils@$(of strip), prefix: $(folder_above strip)}]
  rust:
    buildable: false
    externals: [{spec: rust@$(of rustc), prefix: $(rustc --print sysroot)}]
END
cat > "$scope/config.yaml" << END
config:
  install_tree: {root: $work/store}
  build_stage: [$work/stage]
  test_stage: $work/test
END
{
    echo "repos:"
    echo "  largesse: $PWD/spack/spack_repo/largesse"
    [ -z "${SPACK_PACKAGES:-}" ] || echo "  builtin: $(realpath "$SPACK_PACKAGES")/repos/spack_repo/builtin"
} > "$scope/repos.yaml"

spack() { env -u CARGO_TARGET_DIR spack -C "$scope" "$@"; }
log=$work/log
{ spack install "largesse@$version" && spack test run largesse; } > "$log" 2>&1 || { tail -30 "$log" >&2; exit 1; }
mkdir -p "$prefix"
cp -R "$(spack location -i largesse)/." "$prefix"
