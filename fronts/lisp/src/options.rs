//! Reads the process's environment variables and resource usage.
#![expect(clippy::disallowed_methods, reason = "the environment is read here only")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Variables that the program set, or removed. They are kept apart because other threads may read the process's own
/// environment at any time.
static CHANGED: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());

/// Returns the variables that the program set, and those that it removed, without a value.
pub(crate) fn changed_environment() -> BTreeMap<String, Option<String>> {
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Sets or removes a variable for this Lisp and the programs that it starts.
pub(crate) fn change_environment(name: &str, value: Option<&str>) {
    let mut changed = CHANGED.lock().unwrap_or_else(PoisonError::into_inner);
    changed.insert(name.to_owned(), value.map(str::to_owned));
}

/// Returns all environment variables with their values.
pub(crate) fn whole_environment() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let mut all: BTreeMap<String, String> =
        std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect();
    for (name, value) in changed_environment() {
        match value {
            Some(value) => all.insert(name, value),
            None => all.remove(&name),
        };
    }
    all
}

/// Returns an environment variable, for `unix:getenv`.
pub(crate) fn environment(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    if let Some(changed) = changed_environment().remove(name) {
        return changed;
    }
    std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
}

/// Returns the process's resource usage in the order of `struct rusage`: seconds of user and system time, the largest
/// resident size in KiB, and counts.
pub(crate) fn usage() -> [f64; 16] {
    usage_of(libc::RUSAGE_SELF)
}

/// Returns the resource usage of the child processes that ended and were waited for.
pub(crate) fn usage_of_children() -> [f64; 16] {
    usage_of(libc::RUSAGE_CHILDREN)
}

fn usage_of(who: libc::c_int) -> [f64; 16] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a `rusage` to memory of that type.
    let done = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: all zeros is a value of a structure of integers, which a successful call overwrites.
    let usage = unsafe { usage.assume_init() };
    debug_assert_eq!(done, 0);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    [
        seconds(usage.ru_utime),
        seconds(usage.ru_stime),
        usage.ru_maxrss as f64,
        usage.ru_ixrss as f64,
        usage.ru_idrss as f64,
        usage.ru_isrss as f64,
        usage.ru_minflt as f64,
        usage.ru_majflt as f64,
        usage.ru_nswap as f64,
        usage.ru_inblock as f64,
        usage.ru_oublock as f64,
        usage.ru_msgsnd as f64,
        usage.ru_msgrcv as f64,
        usage.ru_nsignals as f64,
        usage.ru_nvcsw as f64,
        usage.ru_nivcsw as f64,
    ]
}
