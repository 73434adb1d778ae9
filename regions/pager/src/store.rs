//! Where pages are while they are not here.

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
}

impl<S: PageStore + ?Sized> PageStore for std::sync::Arc<S> {
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
}

impl<S: PageStore + ?Sized> PageStore for Box<S> {
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
        }
    }
}

impl std::error::Error for StoreError {}
