//! Sets the library's linker flags. `nodelete` keeps it loaded, because patched slots point into it until the process
//! ends. `-Bsymbolic-functions` binds its references to the names it exports to its own definitions, also where the C
//! library comes first in the search order because the library was loaded late.
#![expect(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-Bsymbolic-functions,-soname,liblargesse.so");
}
