//! The reasons why the library cannot serve a program, with messages that say what to type.

use largesse_terminal::line;
use object::elf;

/// The reason why the library cannot serve a program.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// The program is statically linked.
    #[error(
        "is statically linked: no library can be preloaded into it.\nLink it dynamically (without -static), or start it without Largesse."
    )]
    Static,
    /// The program names a loader but needs no shared library.
    #[error(
        "uses no shared library, so that it has no malloc to replace.\nLink it with the C library, or start it without Largesse."
    )]
    NoLibraries,
    /// The program uses the musl C library.
    #[error(
        "is linked with the musl C library; liblargesse.so needs the GNU C library.\nUse a build of the program for glibc."
    )]
    Musl,
    /// The program runs with the rights of its owner or group.
    #[error(
        "is {what}: the loader ignores LD_PRELOAD in programs that change their rights.\nStart Largesse with those rights instead (`sudo largesse run -- PROGRAM`), or run a copy without the bit (chmod u-s,g-s)."
    )]
    SetId { what: &'static str },
    /// The file has capabilities.
    #[error(
        "has file capabilities (getcap shows them): the loader ignores LD_PRELOAD in programs that gain rights.\nRun a copy without them (cp drops them)."
    )]
    Capabilities,
    /// The program is 32-bit code.
    #[error("is a 32-bit program; liblargesse.so is 64-bit.\nUse a 64-bit build of the program.")]
    Bits32,
    /// The program is for another processor, given by its ELF machine number.
    #[error(
        "is built for another processor ({}; this one is {}).",
        machine_name(*.number),
                std::env::consts::ARCH
    )]
    Machine { number: u16 },
    /// The program is built with a sanitizer, which must intercept malloc first.
    #[error(
        "is built with a sanitizer ({}), which watches malloc itself.\nStart it without Largesse, or build it without -fsanitize.",
        line(.name)
    )]
    Sanitizer { name: String },
    /// The program is linked with an MPI library, but MPI ranks are to hold its pages.
    #[error(
        "uses MPI itself ({}): the ranks of its mpirun cannot hold its pages as well.\nUse another store: --far file:PATH.",
        line(.library)
    )]
    Mpi { library: String },
}

/// Returns the common name of the processor with this ELF machine number.
fn machine_name(number: u16) -> String {
    match number {
        elf::EM_386 => "i386".into(),
        elf::EM_ARM => "32-bit ARM".into(),
        elf::EM_AARCH64 => "aarch64".into(),
        elf::EM_X86_64 => "x86_64".into(),
        elf::EM_PPC64 => "ppc64".into(),
        elf::EM_S390 => "s390x".into(),
        elf::EM_RISCV => "riscv".into(),
        elf::EM_LOONGARCH => "loongarch".into(),
        other => format!("ELF machine {other}"),
    }
}
