//! Finds the built files.

use std::path::{Path, PathBuf};

/// Returns the root folder of the checkout.
#[must_use]
pub fn workspace() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// Returns the path of the library that `make` built, or that `LARGESSE_LIBRARY` names.
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

/// Returns the path of the `largesse` command of the release build, or else of the debug build.
#[must_use]
pub fn built_command() -> PathBuf {
    let candidates = ["release/largesse", "debug/largesse"].map(|name| target().join(name));
    let found = candidates.into_iter().find(|path| path.exists());
    found.expect("no largesse command: type `make`, or `cargo build --release -p largesse-cli`")
}

/// Returns the path of a program of the same build that the command executes.
#[must_use]
pub fn built_companion(name: &str) -> PathBuf {
    let path = built_command().with_file_name(name);
    assert!(path.exists(), "{} is not there: type `make`", path.display());
    path
}

/// Returns whether tests that take minutes should run: `make test-numa` and `make check-deep` set `LARGESSE_DEEP` for
/// them.
#[must_use]
pub fn deep() -> bool {
    variable("LARGESSE_DEEP").is_some()
}

/// Returns the folder to which Cargo writes the built files.
pub(crate) fn target() -> PathBuf {
    variable("CARGO_TARGET_DIR").unwrap_or_else(|| workspace().join("target"))
}

#[expect(clippy::disallowed_methods, reason = "Cargo and make pass paths to tests in variables")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}
