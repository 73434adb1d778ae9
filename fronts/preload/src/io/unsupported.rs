//! Replaces system-call interception on architectures that lack it: there, far memory needs the privilege to let
//! userfaultfd serve faults of the kernel.

use core::ffi::c_int;
use core::ops::Range;

pub(crate) fn in_this_process() {}

/// A filter, of which there is none.
#[derive(Debug)]
pub(crate) struct PreparedFilter;

impl PreparedFilter {
    pub(crate) fn signals(&self) -> u64 {
        0
    }
}

pub(crate) fn prepare(_: &[Range<usize>], _: bool) -> Result<PreparedFilter, c_int> {
    Err(libc::ENOSYS)
}

/// The threads that get a filter, besides those that they start later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilteredThreads {
    /// The calling one.
    Calling,
    /// All of the process.
    All,
}

pub(crate) fn take_signals(_: &PreparedFilter) -> Result<(), c_int> {
    Err(libc::ENOSYS)
}

pub(crate) fn install(_: &PreparedFilter, _: FilteredThreads) -> Result<(), c_int> {
    Err(libc::ENOSYS)
}
