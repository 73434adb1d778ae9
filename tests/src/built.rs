//! Where the built files are.

use std::path::{Path, PathBuf};

/// The root of the checkout.
#[must_use]
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// The library that `make` built, or the one that `LARGESSE_LIBRARY` names.
#[must_use]
pub fn built_library() -> PathBuf {
    let path = match variable("LARGESSE_LIBRARY") {
        Some(named) => named,
        None => target().join("preload/liblargesse.so"),
    };
    assert!(
        path.exists(),
        "{} is not there: type `make`, or `cargo build --profile preload -p largesse-preload`",
        path.display()
    );
    path
}

/// The `largesse` command of the release build, or of the debug build.
#[must_use]
pub fn built_command() -> PathBuf {
    let candidates = ["release/largesse", "debug/largesse"].map(|name| target().join(name));
    let found = candidates.into_iter().find(|path| path.exists());
    found.expect("no largesse command: type `make`, or `cargo build --release -p largesse-cli`")
}

/// A program that the command executes, of the same build.
#[must_use]
pub fn built_companion(name: &str) -> PathBuf {
    let path = built_command().with_file_name(name);
    assert!(path.exists(), "{} is not there: type `make`", path.display());
    path
}

/// Whether tests that take minutes are wanted (`LARGESSE_DEEP`, as `make test-numa` sets it).
#[must_use]
pub fn deep() -> bool {
    variable("LARGESSE_DEEP").is_some()
}

/// Where Cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    variable("CARGO_TARGET_DIR").unwrap_or_else(|| workspace().join("target"))
}

#[expect(clippy::disallowed_methods, reason = "tests are told by Cargo and make where things are")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}
