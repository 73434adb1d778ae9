//! Where pages are while they are not here.

use core::ffi::c_int;
use core::ops::Deref;
use std::fmt;

/// A place for pages, addressed by byte. Contents of bytes that were never written are undefined.
///
/// Implementations are called by several threads at once, never for overlapping bytes. They must
/// not take memory from the heap that stands on them.
pub trait PageStore: Send + Sync + fmt::Debug {
    /// Make sure that `len` bytes at `at` can be written later: a full store is told here, not in
    /// the middle of an eviction.
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError>;

    /// Read what was last written.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError>;

    /// Write; whole when it returns `Ok`.
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError>;

    /// Nobody wants these bytes any more: their space comes back.
    fn discard(&self, at: u64, len: u64);

    /// The process forks, and nobody is inside meanwhile. From [`Fork::InParent`] and
    /// [`Fork::InChild`] on, each side reads what was written before, and nothing of what the other
    /// writes. An error before the fork leaves everything as it was: there will be no second side.
    fn fork(&self, _step: Fork) -> Result<(), StoreError> {
        Err(StoreError::OneProcess)
    }
}

/// A place that holds stores for several processes: another process's memory, other ranks, a Redis.
pub trait Spaces: Send + Sync + fmt::Debug {
    /// A new, empty store. What it holds is given back when it is dropped.
    fn create(&self) -> Result<Box<dyn SpaceStore>, StoreError>;

    /// Files in memory in which stores have spans, as descriptors that stay open. Who maps them copies by itself.
    fn windows(&self) -> Vec<c_int> {
        Vec::new()
    }
}

/// A store of [`Spaces`].
pub trait SpaceStore: PageStore {
    /// Where the span of 2 MiB that `at` is in lies, if that is in one of the windows. It stays there as long as anything of it
    /// is reserved.
    fn find(&self, _at: u64) -> Option<Found> {
        None
    }
}

/// A place in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which of [`Spaces::windows`].
    pub window: usize,
    /// Byte of it.
    pub at: u64,
}

/// The steps of a fork. After `Before` returned `Ok`, each side takes its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// It is about to happen; pages lie below so many bytes.
    Before {
        /// End of the last page.
        bytes: u64,
    },
    /// The parent goes on, also when there is no child after all.
    InParent,
    /// The child begins; it has one thread.
    InChild,
}

/// A store in a box, or one that is shared.
impl<P> PageStore for P
where
    P: Deref<Target: PageStore> + Send + Sync + fmt::Debug,
{
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        (**self).reserve(at, len)
    }
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        (**self).read(at, into)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        (**self).write(at, from)
    }
    fn discard(&self, at: u64, len: u64) {
        (**self).discard(at, len);
    }
    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        (**self).fork(step)
    }
}

/// What a store could not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No room for so many bytes more.
    Full {
        /// Bytes that were asked for.
        wanted: u64,
    },
    /// The kernel's answer to a call.
    System {
        /// Which call.
        call: &'static str,
        /// Its `errno`.
        errno: i32,
    },
    /// A call moved fewer bytes than it was given, again and again.
    Short {
        /// Which call.
        call: &'static str,
        /// Bytes that were to be moved.
        wanted: usize,
        /// Bytes that were.
        done: usize,
    },
    /// The other side is gone, or does not answer as it should; worded for the user, no secrets.
    Lost(String),
    /// Two processes cannot share what the store holds.
    OneProcess,
    /// Processes that forked, one from the other, share as many files as there may be.
    Forks {
        /// How many.
        most: usize,
    },
}

impl StoreError {
    /// There may be room later, and nothing is lost: pages stay where they are.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        let StoreError::System { errno, .. } = self else { return matches!(self, StoreError::Full { .. }) };
        matches!(*errno, libc::ENOSPC | libc::EDQUOT)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Full { wanted } => write!(f, "no room for {wanted} bytes more"),
            StoreError::System { call, errno } => {
                write!(f, "{call}: {}", std::io::Error::from_raw_os_error(*errno))
            }
            StoreError::Short { call, wanted, done } => {
                write!(f, "{call}: {done} of {wanted} bytes")
            }
            StoreError::Lost(why) => f.write_str(why),
            StoreError::OneProcess => write!(f, "the store serves one process only"),
            StoreError::Forks { most } => write!(f, "{most} forks, each after new writes, are the most"),
        }
    }
}

impl std::error::Error for StoreError {}
