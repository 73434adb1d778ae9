//! Reads and changes the environment for commands that start programs. No other file of these commands does.
#![expect(clippy::disallowed_methods, reason = "this file is where the ban points to")]

use largesse_settings::{PREFIX, Remark, SettingsReader};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Returns the value of `name` if it is set. A variable of Largesse that is empty counts as not set.
pub fn get(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty() || !name.starts_with(PREFIX))
}

/// Returns a line for the user about each variable that has no effect in `reader` although the user may believe that
/// it has one.
#[must_use]
pub fn remarks(reader: SettingsReader) -> Vec<String> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    let preload = get("LD_PRELOAD").map(text).unwrap_or_default();
    let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    variables
        .filter_map(|(name, value)| Some(Remark::of(reader, &name, &value, &preload)?.to_string()))
        .collect()
}

/// Removes the variables whose names begin with one of `starts`.
pub fn remove_all(starts: &[&str]) {
    let known = |name: &OsString| starts.iter().any(|start| name.to_string_lossy().starts_with(start));
    for (name, _) in std::env::vars_os().filter(|(name, _)| known(name)).collect::<Vec<_>>() {
        // SAFETY: the commands have one thread when they change the environment, so that no other reads it.
        unsafe { std::env::remove_var(name) }
    }
}

/// Sets `name` for the program that this process becomes. Other variables keep their order, so that `largesse run --
/// env` prints the lines of `env` and Largesse's own.
pub fn set(name: &str, value: &OsStr) {
    // SAFETY: neither `largesse run` nor `largesse pin` has a second thread when it sets variables, so none reads
    // them.
    unsafe { std::env::set_var(name, value) }
}

/// Removes `name` from the environment of the program that this process becomes.
pub fn remove(name: &str) {
    // SAFETY: as in `set`, there is one thread.
    unsafe { std::env::remove_var(name) }
}

/// Returns the folders in which an agent may make a private folder for its socket, the best first.
#[must_use]
pub fn agent_folders() -> Vec<PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(get);
    named.chain(["/tmp".into()]).map(PathBuf::from).collect()
}
