//! The one door to the kernel. Another system is another file with the same functions.

#[cfg(not(miri))]
pub(crate) mod descriptors;
#[cfg(not(miri))]
mod linux;
#[cfg(miri)]
mod miri;
#[cfg(not(miri))]
pub(crate) mod seccomp;
#[cfg(not(miri))]
pub(crate) mod shared;
#[cfg(not(miri))]
pub(crate) mod userfault;

#[cfg(not(miri))]
pub(crate) use linux::*;
#[cfg(miri)]
pub(crate) use miri::*;
