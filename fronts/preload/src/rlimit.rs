//! Reads the limits on the resources of this process (`getrlimit(2)`).

/// Returns the soft limit on a resource in bytes; `usize::MAX` if there is none.
pub(crate) fn soft_limit(what: libc::__rlimit_resource_t) -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writing.
    let rc = unsafe { libc::getrlimit(what, &raw mut limit) };
    if rc != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        usize::MAX
    } else {
        usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX)
    }
}
