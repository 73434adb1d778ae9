//! Reads the variables of the environment that a comparison reports.

/// Returns the variables that change the behaviour of `largesse run`, as NAME=VALUE, sorted.
pub(super) fn ours() -> Vec<String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        format!("{}={}", name.display(), value.display())
    };
    let mut ours: Vec<_> =
        std::env::vars_os().map(text).filter(|line| line.starts_with("LARGESSE_")).collect();
    ours.sort();
    ours
}
