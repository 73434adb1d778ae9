//! Sets the library's linker flags. `nodelete` keeps it loaded, because patched slots point into it until the process
//! ends. `-Bsymbolic-functions` binds its references to the names it exports to its own definitions, also where the C
//! library comes first in the search order because the library was loaded late. The name of the library (`soname`) ends
//! with `LARGESSE_ABI` of the header.
//!
//! `LARGESSE_BSYMBOLIC` is for linkers that know `-Bsymbolic` alone. That option also marks the library: when the
//! library looks up the `malloc` of the process (`symbol.rs`), the dynamic linker then finds the library's own before
//! any other, so that another allocator is not noticed. `packaging/build.sh` removes the mark.
#![expect(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]
#![expect(clippy::disallowed_methods, reason = "this is how a build script is told something")]

fn main() {
    const HEADER: &str = "include/largesse.h";
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={HEADER}");
    println!("cargo::rerun-if-env-changed=LARGESSE_BSYMBOLIC");
    let header = std::fs::read_to_string(HEADER).expect("the header is part of this crate");
    let abi = header.lines().find_map(|line| line.strip_prefix("#define LARGESSE_ABI "));
    let abi = abi.expect("largesse.h defines LARGESSE_ABI");
    let symbolic =
        if std::env::var_os("LARGESSE_BSYMBOLIC").is_some() { "-Bsymbolic" } else { "-Bsymbolic-functions" };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,{symbolic},-soname,liblargesse.so.{abi}");
}
