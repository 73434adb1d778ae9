//! Words why the kernel has refused the filter of system calls.

/// Returns the message for `errno`.
pub(crate) fn no_filter(errno: i32) -> String {
    format!(
        "a filter for system calls (seccomp): {}; `largesse doctor` says how to do without",
        std::io::Error::from_raw_os_error(errno)
    )
}
