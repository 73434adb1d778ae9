//! Slots and signal handlers point into the library for good: it must never be unloaded.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete,-soname,liblargesse.so");
}
