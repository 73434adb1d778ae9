//! Sets the library's linker flags. `nodelete` keeps it loaded, because patched slots point into it until the process
//! ends. `-Bsymbolic` binds its references to the names it exports to its own definitions, also where the C library
//! comes first in the search order because the library was loaded late. The number in its name is that of the header.
#![expect(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]

fn main() {
    const HEADER: &str = "include/largesse.h";
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={HEADER}");
    let header = std::fs::read_to_string(HEADER).expect("the header is part of this crate");
    let abi = header.lines().find_map(|line| line.strip_prefix("#define LARGESSE_ABI "));
    let abi = abi.expect("largesse.h defines LARGESSE_ABI");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-Bsymbolic,-soname,liblargesse.so.{abi}");
}
