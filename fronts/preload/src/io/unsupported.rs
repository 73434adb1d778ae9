//! Replaces system-call interception on architectures that lack it: there, far memory needs the privilege to let
//! userfaultfd serve faults of the kernel.

use core::ffi::c_int;
use core::ops::Range;

pub(crate) fn in_this_process() {}

/// A filter, of which there is none.
#[derive(Debug)]
pub(crate) struct Prepared;

impl Prepared {
    pub(crate) fn signals(&self) -> u64 {
        0
    }
}

pub(crate) fn prepare(_: &[Range<usize>], _: bool) -> Result<Prepared, c_int> {
    Err(libc::ENOSYS)
}

/// The threads that get a filter, besides those that they start later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The calling one.
    Calling,
    /// All of the process.
    All,
}

pub(crate) fn take_signals(_: &Prepared) -> Result<(), c_int> {
    Err(libc::ENOSYS)
}

pub(crate) fn install(_: &Prepared, _: Threads) -> Result<(), c_int> {
    Err(libc::ENOSYS)
}
