//! The interface to backing storage for far pages.

use crate::StoreError;
use crate::transfer::TransferQueue;
use core::ops::Deref;
use std::fmt;

/// Backing storage for pages, addressed by byte offset. Bytes that were never written have undefined contents.
///
/// Several threads call a store at once, never for overlapping bytes. An implementation must not allocate memory from a
/// heap whose pages it stores.
pub trait PageStore: Send + Sync + fmt::Debug {
    /// Reserves room for `len` bytes at `at`, so that a full store is reported here and not in the middle of an
    /// eviction.
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError>;

    /// Reads the last written contents of the bytes from `at` on.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError>;

    /// Writes all of `from` to the bytes from `at` on. After an error, the contents of these bytes are undefined.
    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError>;

    /// Frees the room of `len` bytes from `at` on, whose contents are no longer needed.
    fn discard(&self, at: u64, len: u64);

    /// Opens a queue of `depth` transfers with `bytes` bytes of memory. It is called in the broker's thread, and only
    /// threads that share the broker's descriptor table may use the queue. Returns `None` if the store makes transfers
    /// only by [`read`](PageStore::read) and [`write`](PageStore::write).
    fn open_queue(&self, _bytes: usize, _depth: usize) -> Result<Option<Box<dyn TransferQueue>>, StoreError> {
        Ok(None)
    }

    /// Takes one step of a process fork, during which no other method is called.
    ///
    /// From [`Fork::InParent`] and [`Fork::InChild`] on, each process reads everything that was written before the
    /// fork, and nothing that the other process writes after it. An error of [`Fork::Before`] leaves the store
    /// unchanged; the process then does not fork.
    fn fork(&self, _step: Fork) -> Result<(), StoreError> {
        Err(StoreError::OneProcess)
    }
}

/// The steps of a fork, of which each store is told: first `Before`, then one of the others in each process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The process is about to fork.
    Before {
        /// End of the last page, in bytes from the start of the store.
        bytes: u64,
    },
    /// The parent continues, even if the fork failed.
    InParent,
    /// The child begins, with a single thread.
    InChild,
}

/// Forwards all calls to the store behind a pointer, such as a box or a shared reference.
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
    fn open_queue(&self, bytes: usize, depth: usize) -> Result<Option<Box<dyn TransferQueue>>, StoreError> {
        (**self).open_queue(bytes, depth)
    }
    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        (**self).fork(step)
    }
}
