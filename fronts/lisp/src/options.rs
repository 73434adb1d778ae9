//! Reads the process's environment variables and resource usage.
#![expect(clippy::disallowed_methods, reason = "the environment is read here only")]

/// Returns an environment variable, for `unix:getenv`.
pub(crate) fn environment(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var_os(name).map(|text| text.to_string_lossy().into_owned())
}

/// Returns the process's resource usage in the order of `struct rusage`: seconds of user and system time, the largest
/// resident size in KiB, and counts.
pub(crate) fn usage() -> [f64; 16] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes a `rusage` to memory of that type.
    let done = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
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
