//! The one door of commands that start programs to the environment.
#![expect(clippy::disallowed_methods, reason = "this file is where the ban points to")]

use largesse_settings::{PREFIX, Unknown};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The value of `name`, if it is set. A variable of ours that is empty is as good as one that is not set.
pub fn get(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty() || !name.starts_with(PREFIX))
}

/// What to say of variables that have no effect although the user may think that they have: one line each.
pub fn remarks() -> Vec<String> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    let mut remarks = Vec::new();
    for (name, value) in std::env::vars_os().map(|(name, value)| (text(name), text(value))) {
        remarks.extend(Unknown::of(&name, &value).map(|unknown| unknown.to_string()));
        if name == "OMP_NUM_THREADS" && !value.is_empty() {
            remarks.extend(largesse_settings::threads(&value).err().map(|wrong| wrong.to_string()));
        }
    }
    remarks
}

/// Removes the variables whose names begin with one of `starts`.
pub fn remove_all(starts: &[&str]) {
    let known = |name: &OsString| starts.iter().any(|start| name.to_string_lossy().starts_with(start));
    for (name, _) in std::env::vars_os().filter(|(name, _)| known(name)).collect::<Vec<_>>() {
        // SAFETY: as for `set`.
        unsafe { std::env::remove_var(name) }
    }
}

/// Sets `name` for the program that this process becomes. The other variables keep their order:
/// `largesse run -- env` prints what `env` prints, and our own lines.
pub fn set(name: &str, value: &OsStr) {
    // SAFETY: neither `largesse run` nor `largesse pin` has a second thread when it sets them, so that nobody reads the environment meanwhile.
    unsafe { std::env::set_var(name, value) }
}

/// Takes `name` away from it.
pub fn remove(name: &str) {
    // SAFETY: as above.
    unsafe { std::env::remove_var(name) }
}

/// Returns the folders below which an agent may make the private one for its socket, the best first.
#[must_use]
pub fn agent_folders() -> Vec<PathBuf> {
    let named = ["XDG_RUNTIME_DIR", "TMPDIR"].into_iter().filter_map(get);
    named.chain(["/tmp".into()]).map(PathBuf::from).collect()
}
