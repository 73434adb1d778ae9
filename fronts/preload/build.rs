//! Patched slots point into the library for good: it must never be unloaded (`nodelete`). And our own
//! references to the names we export must mean ours, also where the C library's come first in the
//! search order because we were loaded late (`-Bsymbolic-functions`).
#![expect(clippy::disallowed_macros, reason = "this is how a build script speaks to cargo")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-Bsymbolic-functions,-soname,liblargesse.so");
}
