//! Provides memory of this machine that becomes far memory in place, once, when a limit comes near.

use crate::rlimit::soft_limit;
use largesse_arena::{Backing, NearMemory, Refusal};
use largesse_pages::{PageKind, Placement, Reserved, SPAN};
use largesse_paging::Far;
use std::sync::OnceLock;

/// Near memory until [`become_far`](LimitedMemory::become_far), and far memory of the same range from then on.
#[derive(Debug)]
pub(crate) struct LimitedMemory {
    range: &'static Reserved,
    near: NearMemory,
    far: OnceLock<Far>,
}

impl LimitedMemory {
    pub(crate) fn new(range: &'static Reserved, kind: PageKind) -> LimitedMemory {
        let near = NearMemory::new(range.shared(), kind, Placement::FirstTouch, false);
        LimitedMemory { range, near, far: OnceLock::new() }
    }

    /// Returns another handle of the address range, for the far memory that will own its pages.
    pub(crate) fn range(&self) -> Reserved {
        self.range.shared()
    }

    /// Reserves a range for the mappings that the program makes once there is far memory.
    pub(crate) fn range_for_mappings(&self) -> Option<Reserved> {
        let most = (soft_limit(libc::RLIMIT_AS) / 4).min(soft_limit(libc::RLIMIT_DATA)) / SPAN * SPAN;
        Reserved::new(self.range.len().min(most), SPAN).ok()
    }

    /// Returns far memory, or `None` before this memory became far.
    pub(crate) fn far(&self) -> Option<&Far> {
        self.far.get()
    }

    /// Lets `far` serve the range from now on, whose contents it has taken over. The caller holds the heap's lock.
    pub(crate) fn become_far(&self, far: Far) {
        let _ = self.far.set(far);
    }

    /// Returns the backing that has the pages now, near or far. Spans keep their contents when far memory takes over.
    pub(crate) fn backing(&self) -> &dyn Backing {
        match self.far.get() {
            None => &self.near,
            Some(far) => far,
        }
    }

    /// Returns how often near memory has refused `what`.
    pub(crate) fn refused(&self, what: Refusal) -> u64 {
        self.near.refused(what)
    }
}
