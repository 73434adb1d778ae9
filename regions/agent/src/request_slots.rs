//! The memory that one process of the program and the agent share: slots, and room for pages beside each.

use crate::slot::Slot;
use core::ptr::NonNull;
use largesse_pages::MapError;
use largesse_pages::shared::{MemoryFile, SharedMapping};

/// Requests on their way at once: a fault, an eviction, and others that take or give back memory.
pub(crate) const SLOTS: usize = 4;
/// The most that moves at once.
pub(crate) const SET: usize = 2 << 20;
/// Where pages begin.
const PAGES: usize = 4096;

const _: () = assert!(SLOTS * size_of::<Slot>() <= PAGES);

/// One side's view.
#[derive(Debug)]
pub(crate) struct Ring(SharedMapping);

impl Ring {
    /// New, in the agent; without room for pages where programs copy them by themselves.
    pub(crate) fn file(carries: bool) -> Result<MemoryFile, MapError> {
        let file = MemoryFile::new(c"largesse-ring", PAGES + if carries { SLOTS * SET } else { 0 })?;
        let len = file.len();
        file.allocate(0, len).map_err(|errno| MapError { op: largesse_pages::MapOp::Commit, len, errno })?;
        Ok(file)
    }

    /// A side begins to use it. `None`: it is too short to be one.
    pub(crate) fn over(mapping: SharedMapping) -> Option<Ring> {
        let _ = mapping.lock(0, mapping.len()); // where that is allowed
        (mapping.len() >= PAGES).then_some(Ring(mapping))
    }

    pub(crate) fn slots(&self) -> &[Slot; SLOTS] {
        // SAFETY: the mapping is as long, page-aligned, zero at first, and lives as long as `self`. What the
        // other side does to a slot is atomic, or happens when it is its turn.
        unsafe { self.0.start().cast().as_ref() }
    }

    /// The room beside a slot, for `len` bytes; `None` if there is not as much.
    pub(crate) fn pages(&self, slot: usize, len: usize) -> Option<NonNull<u8>> {
        let at = PAGES + slot * SET;
        let inside = len <= SET && at + len <= self.0.len();
        // SAFETY: inside the mapping, as was just checked.
        inside.then(|| unsafe { self.0.start().add(at) })
    }

    /// Whether a forked child has it, or nothing at its addresses.
    pub(crate) fn inherited(&self, yes: bool) -> Result<(), MapError> {
        self.0.inherited(yes)
    }
}
