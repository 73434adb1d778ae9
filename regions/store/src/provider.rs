//! Services that keep stores for several processes.

use crate::queue_bytes::QueueBytes;
use crate::transfer::TransferQueue;
use crate::{PageStore, StoreError};
use core::ffi::c_int;
use std::fmt;

/// A service that keeps stores for several processes: another process's memory, other MPI ranks, or a Redis server.
pub trait StoreProvider: Send + Sync + fmt::Debug {
    /// Makes a new, empty store, whose contents are freed when it is dropped.
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError>;

    /// Returns the *windows*: the memory files that hold spans of the stores, as descriptors that stay open. A process
    /// that maps them can copy pages itself.
    fn windows(&self) -> Vec<c_int> {
        Vec::new()
    }
}

/// A store that was made by a [`StoreProvider`].
pub trait ProvidedStore: PageStore {
    /// Returns where the 2 MiB span around offset `at` lies, if it lies in one of the
    /// [windows](StoreProvider::windows). The answer does not change while any byte of the span is reserved.
    fn mapped_span(&self, _at: u64) -> Option<MappedSpan> {
        None
    }

    /// Returns the number of threads that make the transfers of a program's queue, each with a queue of its own from
    /// [`open_queue_over`](ProvidedStore::open_queue_over). Returns 0 if the program transfers only by
    /// [`read`](PageStore::read) and [`write`](PageStore::write).
    fn queue_threads(&self) -> usize {
        0
    }

    /// Opens a queue of `depth` transfers over `memory` for the calling thread. Returns `None` if the store has no
    /// queues. The queue's `reap` may wait longer than it is told to, for an answer that has begun to arrive or a
    /// server that cannot be reached.
    fn open_queue_over(&self, _memory: QueueBytes, _depth: usize) -> Option<Box<dyn TransferQueue>> {
        None
    }
}

/// The position of a span in a window, which is a memory file that other processes can map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedSpan {
    /// Index of the file in [`StoreProvider::windows`].
    pub window: usize,
    /// Offset of the span in the window's file, in bytes.
    pub at: u64,
}
