# The recipe of Spack: builds the sources. `spack repo add packaging/spack/spack_repo/largesse`, then
# `spack install largesse`, or, in an unpacked archive, `spack install largesse@0.1.0 dev_path=$PWD`.

from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Largesse(MakefilePackage):
    """Large pages, far memory and placement for numerical programs, without changing them."""

    homepage = "https://github.com/largesse-project/largesse"
    git = "https://github.com/largesse-project/largesse.git"

    license("MIT OR Apache-2.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("mpi", default=False, description="Build the plug-in for far memory on other MPI ranks")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("binutils", type="build")  # strip
    depends_on("mpi", when="+mpi")

    def build(self, spec, prefix):
        make("library", "command")
        if spec.satisfies("+mpi"):
            make("plugins", "MPICC=" + spec["mpi"].mpicc)

    def install(self, spec, prefix):
        make("install", "PREFIX=" + prefix)

    def test_run(self):
        """start a program"""
        which(self.prefix.bin.largesse)("run", "--", "true")
