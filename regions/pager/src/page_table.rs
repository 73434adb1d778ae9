//! The page table: what is known of each page of far memory, and every transition of its state.
//!
//! ```text
//!          begin_fill            end_fill                 begin_evict            end_evict
//!   Zero ─────────────► Filling ───────────► Clean ────┬──────────────► Leaving ───────────► SwappedOut
//!   SwappedOut ───────►    │                   │ allow_writes              │    └────────────► Zero
//!                          └───────────────► Dirty ────┘ ◄─────────────────┘
//!                                                         cancel_evict
//! ```
//! In addition, `adopt` makes `Zero` pages `Dirty`, and `begin_drop` and `end_drop` take any page to `Zero` or
//! `Outside`.
//!
//! No other file writes to an entry: they read entries by indexing. The pager's lock guards the table. A page that is
//! `Filling` or `Leaving` belongs to the thread that made it so, which works on it outside the lock; all other threads
//! wait until that thread ends the transition. Debug builds check that each transition begins in a state that permits
//! it.

mod contents;
mod evict;
mod fill;

pub(crate) use contents::Contents;

use crate::page::PageState;
use core::ops::{Index, Range};
use core::slice::SliceIndex;
use largesse_pages::{Table, Zeroed};
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;
use largesse_policy::streams::Access;

/// An entry of the page table.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageEntry {
    /// Checksum of the page's contents in the store.
    pub(crate) sum: u64,
    /// Value of the eviction clock at the last eviction, 0 if there was none (see `largesse_policy::replacement`).
    pub(crate) evicted_at: u32,
    /// Number of the compute core in which the unit that begins here was last swapped in.
    core: u16,
    pub(crate) state: PageState,
    /// Whether the store holds the page's contents, or an older version of them.
    pub(crate) stored: bool,
    /// Whether the program has given up the contents: they need not be written back.
    pub(crate) unwanted: bool,
    /// 2 if the page was changed during its last residency, 1 if during the one before, otherwise 0.
    pub(crate) changed: u8,
    /// Whether it was prefetched, and no use of it is known.
    prefetched: bool,
    /// How the fault that filled it was classified (see `largesse_policy::streams`).
    pub(crate) access: Access,
    /// Whether a thread waits for the end of the transition and must be woken.
    waited_for: bool,
    /// Whether it was evicted from the protected part of the replacement queue.
    from_protected: bool,
}

// SAFETY: zero bytes are a page in state `Zero`, used `Dense`, with every flag unset.
unsafe impl Zeroed for PageEntry {}

impl PageEntry {
    /// Returns the part of the replacement queue from which the page was last evicted.
    pub(crate) fn part(&self) -> Protection {
        if self.from_protected { Protection::Protected } else { Protection::Probationary }
    }

    /// Returns the part from which the page was last evicted, and the eviction clock then; `None` if it never was.
    pub(crate) fn last_eviction(&self) -> Option<(Protection, u32)> {
        (self.evicted_at != 0).then_some((self.part(), self.evicted_at))
    }
}

/// The entries of all pages of far memory.
#[derive(Debug)]
pub(crate) struct PageTable {
    entries: Table<PageEntry>,
    resident: usize,
}

impl PageTable {
    /// Makes a table of `pages` pages in state `Zero`. `None` if the kernel has no address space for it.
    pub(crate) fn new(pages: usize) -> Option<PageTable> {
        Some(PageTable { entries: Table::new(pages)?, resident: 0 })
    }

    /// Returns the number of pages that take local memory: from `begin_fill` until `end_evict` or `begin_drop`.
    pub(crate) fn resident(&self) -> usize {
        self.resident
    }

    /// Returns the entries of a range, `None` if it exceeds the table.
    pub(crate) fn get(&self, pages: Range<PageNumber>) -> Option<&[PageEntry]> {
        self.entries.get(pages)
    }

    /// Notes that a thread waits for the end of a page's transition.
    pub(crate) fn wait_for(&mut self, page: PageNumber) {
        debug_assert!(self[page].state.in_flight(), "page {page} is waited for: {:?}", self[page]);
        self.entries[page].waited_for = true;
    }

    /// Returns whether a thread waits for a page that is no longer in transition, and forgets it.
    pub(crate) fn take_waiting(&mut self, page: PageNumber) -> bool {
        core::mem::take(&mut self.entries[page].waited_for)
    }

    /// Returns whether a page was prefetched and no use of it was known, which is known from now on.
    pub(crate) fn take_prefetched(&mut self, page: PageNumber) -> bool {
        core::mem::take(&mut self.entries[page].prefetched)
    }

    /// Notes that the unit that begins with `page` is swapped in during compute core `core`. Returns whether that is
    /// the first time in this core.
    pub(crate) fn swap_in_during(&mut self, page: PageNumber, core: u16) -> bool {
        core::mem::replace(&mut self.entries[page].core, core) != core
    }
}

impl<I: SliceIndex<[PageEntry]>> Index<I> for PageTable {
    type Output = I::Output;

    fn index(&self, pages: I) -> &I::Output {
        &self.entries[pages]
    }
}
