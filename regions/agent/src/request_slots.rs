//! The memory shared by one process of the program and the agent: request slots, each with a buffer for pages.

use crate::slot::RequestSlot;
use core::ptr::NonNull;
use largesse_pages::MapError;
use largesse_pages::shared::{MemoryFile, SharedMapping};

/// Number of concurrent requests: a fault, an eviction, and others that reserve or discard.
pub(crate) const SLOTS: usize = 4;
/// Size in bytes of a slot's page buffer, the most that one request transfers.
pub(crate) const MAX_TRANSFER: usize = 2 << 20;
/// Offset in bytes of the first page buffer.
const PAGES: usize = 4096;

const _: () = assert!(SLOTS * size_of::<RequestSlot>() <= PAGES);

/// A mapping of the slots in one of the two processes.
#[derive(Debug)]
pub(crate) struct RequestSlots(SharedMapping);

impl RequestSlots {
    /// Creates the shared memory, in the agent. `carries` says whether it has page buffers, which programs that copy
    /// pages by themselves do not need.
    pub(crate) fn file(carries: bool) -> Result<MemoryFile, MapError> {
        let file = MemoryFile::new(c"largesse-ring", PAGES + if carries { SLOTS * MAX_TRANSFER } else { 0 })?;
        let len = file.len();
        file.allocate(0, len).map_err(|errno| MapError { op: largesse_pages::MapOp::Commit, len, errno })?;
        Ok(file)
    }

    /// Uses a mapping as slots. Returns `None` if it is too short.
    pub(crate) fn over(mapping: SharedMapping) -> Option<RequestSlots> {
        let _ = mapping.lock(0, mapping.len()); // fails where RLIMIT_MEMLOCK forbids it
        (mapping.len() >= PAGES).then_some(RequestSlots(mapping))
    }

    pub(crate) fn slots(&self) -> &[RequestSlot; SLOTS] {
        // SAFETY: the mapping is long enough, page-aligned, initially zero, and lives as long as `self`. The other side
        // accesses a slot by atomic operations, or while the turn is its own.
        unsafe { self.0.start().cast().as_ref() }
    }

    /// Returns the page buffer of a slot, or `None` if it has less than `len` bytes.
    pub(crate) fn pages(&self, slot: usize, len: usize) -> Option<NonNull<u8>> {
        let at = PAGES + slot * MAX_TRANSFER;
        let inside = len <= MAX_TRANSFER && at + len <= self.0.len();
        // SAFETY: `at` is inside the mapping, as was just checked.
        inside.then(|| unsafe { self.0.start().add(at) })
    }

    /// Sets whether a forked child inherits the mapping or has nothing at its addresses.
    pub(crate) fn inherited(&self, yes: bool) -> Result<(), MapError> {
        self.0.inherited(yes)
    }
}
