//! Makes all of the crate's calls of the kernel. A port to another system is a set of files with the same functions,
//! like `miri.rs`.

#[cfg(not(miri))]
mod call;
#[cfg(not(miri))]
pub(crate) mod descriptors;
#[cfg(not(miri))]
mod files;
#[cfg(not(miri))]
mod linux;
#[cfg(miri)]
mod miri;
#[cfg(not(miri))]
mod moved;
#[cfg(not(miri))]
mod nodes;
#[cfg(not(miri))]
mod raw;
#[cfg(not(miri))]
mod references;
#[cfg(not(miri))]
mod residency;
#[cfg(not(miri))]
pub(crate) mod seccomp;
#[cfg(not(miri))]
pub(crate) mod shared;
#[cfg(not(miri))]
pub(crate) mod userfault;
#[cfg(not(miri))]
mod wait;

#[cfg(not(miri))]
pub use call::{raw_call, system_call};
#[cfg(miri)]
pub(crate) use miri::*;
#[cfg(not(miri))]
pub(crate) use {files::*, linux::*, moved::*, nodes::*, raw::*, references::*, residency::*, wait::*};
