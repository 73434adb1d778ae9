//! Services that make stores for several processes.

use crate::{PageStore, StoreError};
use core::ffi::c_int;
use std::fmt;

/// A service that makes stores for several processes: another process's memory, other MPI ranks, a Redis server.
pub trait StoreProvider: Send + Sync + fmt::Debug {
    /// Makes a new, empty store, whose contents are freed when it is dropped.
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError>;

    /// Returns the files in memory that hold spans of the stores, as descriptors that stay open. A process that maps
    /// them can copy pages itself.
    fn windows(&self) -> Vec<c_int> {
        Vec::new()
    }
}

/// A store that was made by a [`StoreProvider`].
pub trait ProvidedStore: PageStore {
    /// Returns the position of the 2 MiB span around offset `at`, if it lies in one of the
    /// [windows](StoreProvider::windows). The position does not change while any byte of the span is reserved.
    fn mapped_span(&self, _at: u64) -> Option<MappedSpan> {
        None
    }
}

/// The position of a span in a window, a file in memory that other processes can map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedSpan {
    /// Index of the file in [`StoreProvider::windows`].
    pub window: usize,
    /// Offset of the span in that file, in bytes.
    pub at: u64,
}
