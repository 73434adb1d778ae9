//! The page table: what is known of each page of far memory, and every transition of its state.
//!
//! ```text
//!          begin_fill            end_fill                 begin_evict            end_evict
//!   Zero ─────────────► Filling ───────────► Clean ────┬──────────────► Leaving ───────────► SwappedOut
//!   SwappedOut ───────►    │                   │ allow_writes              │    └────────────► Zero
//!              ▲           └───────────────► Dirty ────┘ ◄─────────────────┤
//!              │                                          cancel_evict       │
//!              └──────────────────────── begin_refill ───────────────────────┘
//! ```
//! In addition, `adopt` makes `Zero` pages `Dirty`, and `begin_drop` and `end_drop` take any page to `Zero` or
//! `Outside`.
//!
//! Only this file writes to entries; other files read them by indexing. The pager's lock guards the table. A page that
//! is `Filling` or `Leaving` belongs to the thread that made it so, which works on it outside the lock; all other
//! threads wait until that thread ends the transition. Debug builds check that each transition begins in a state that
//! permits it.

use crate::page::PageState;
use core::ops::{Index, Range};
use core::slice::SliceIndex;
use largesse_pages::{Table, Zeroed};
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;
use largesse_policy::streams::Access;

/// The record of one page: its state, its checksum, and how it was last filled and evicted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageEntry {
    /// Checksum of the page's contents in the store.
    pub(crate) sum: u64,
    /// Value of the eviction clock at the last eviction, 0 if the page was never evicted (see
    /// `largesse_policy::replacement`).
    pub(crate) evicted_at: u32,
    /// Number of the compute core during which the unit that begins here was last paged in.
    core: u16,
    pub(crate) state: PageState,
    /// Whether the store holds the page's contents, or an older version of them.
    pub(crate) stored: bool,
    /// Whether the program has given up the contents, so that they need not be written back.
    pub(crate) unwanted: bool,
    /// 2 if the page was changed during its last residency, 1 if during the one before, otherwise 0.
    pub(crate) changed: u8,
    /// Whether the page was prefetched, and the program is not known to have used it.
    prefetched: bool,
    /// How the fault that filled the page was classified (see `largesse_policy::streams`).
    pub(crate) access: Access,
    /// Whether a thread waits for the end of the page's transition and must be woken.
    waited_for: bool,
    /// Whether the page was last evicted from the protected part of the replacement queue.
    from_protected: bool,
    /// Whether the page is resident again while a write of its former contents is in flight. It is not evicted until
    /// that write ends.
    pub(crate) in_write: bool,
    /// Whether the contents may differ from those at the last [`watch`](PageTable::watch).
    differs: bool,
}

// SAFETY: zero bytes are a page in state `Zero`, used `Dense`, with every flag unset.
unsafe impl Zeroed for PageEntry {}

impl PageEntry {
    /// Returns whether the page is in flight, or a write of its former contents is.
    pub(crate) fn is_busy(&self) -> bool {
        self.state.in_flight() || self.in_write
    }

    /// Returns the part of the replacement queue from which the page was last evicted.
    pub(crate) fn part(&self) -> Protection {
        if self.from_protected { Protection::Protected } else { Protection::Probationary }
    }

    /// Returns the part of the replacement queue from which the page was last evicted, and the eviction clock at that
    /// time; `None` if it never was.
    pub(crate) fn last_eviction(&self) -> Option<(Protection, u32)> {
        (self.evicted_at != 0).then_some((self.part(), self.evicted_at))
    }
}

/// A description of the contents of a page that was taken from the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// Checksum of the contents; `None` if they need not be stored, because they are zero or the program has given them
    /// up.
    pub(crate) sum: Option<u64>,
    /// Whether the contents must be written to the store.
    pub(crate) changed: bool,
}

/// The entries of all pages of far memory.
#[derive(Debug)]
pub(crate) struct PageTable {
    entries: Table<PageEntry>,
    resident: usize,
}

impl PageTable {
    /// Makes a table of `pages` pages in state `Zero`. Returns `None` if the kernel has no address space for it.
    pub(crate) fn new(pages: usize) -> Option<PageTable> {
        Some(PageTable { entries: Table::new(pages)?, resident: 0 })
    }

    /// Returns the number of pages from the beginning of a fill (or `adopt`) until the end of the eviction (or
    /// `begin_drop`). It includes `Leaving` pages that exist only as a copy, which take no local memory: see
    /// `PagerState::occupied`.
    pub(crate) fn resident(&self) -> usize {
        self.resident
    }

    /// Returns the entries of a range; `None` if it exceeds the table.
    pub(crate) fn get(&self, pages: Range<PageNumber>) -> Option<&[PageEntry]> {
        self.entries.get(pages)
    }

    /// Notes that a thread waits for the end of a page's transition.
    pub(crate) fn wait_for(&mut self, page: PageNumber) {
        debug_assert!(self[page].state.in_flight(), "page {page} is waited for: {:?}", self[page]);
        self.entries[page].waited_for = true;
    }

    /// Returns whether a thread waits for a page whose transition has ended, and clears that mark.
    pub(crate) fn take_waiting(&mut self, page: PageNumber) -> bool {
        core::mem::take(&mut self.entries[page].waited_for)
    }

    /// Returns whether a page was prefetched and not known to be used until now. From now on it is known to be used.
    pub(crate) fn take_prefetched(&mut self, page: PageNumber) -> bool {
        core::mem::take(&mut self.entries[page].prefetched)
    }

    /// Notes that the unit that begins with `page` is paged in during the compute core with number `core`. Returns
    /// whether that is the first time in this core.
    pub(crate) fn swap_in_during(&mut self, page: PageNumber, core: u16) -> bool {
        core::mem::replace(&mut self.entries[page].core, core) != core
    }
}

/// Transitions by which pages become resident, and resident pages become writable.
impl PageTable {
    /// Makes missing pages `Filling`: from now on they count against local memory, and threads that touch them wait.
    pub(crate) fn begin_fill(&mut self, pages: Range<PageNumber>, access: Access, prefetched: bool) {
        self.resident += pages.len();
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert!(page.state.is_missing(), "page {number} is filled: {page:?}");
            // The store may hold contents that the page had before it became zero.
            page.differs |= page.state == PageState::Zero;
            (page.state, page.prefetched, page.access) = (PageState::Filling, prefetched, access);
        }
    }

    /// Makes a `Filling` page `Dirty`, if the program may write to it at once, or `Clean`. Returns whether a thread
    /// waits for it and must be woken.
    pub(crate) fn end_fill(&mut self, number: PageNumber, dirty: bool) -> bool {
        let page = &mut self.entries[number];
        debug_assert_eq!(page.state, PageState::Filling, "page {number} was filled");
        page.state = if dirty { PageState::Dirty } else { PageState::Clean };
        self.take_waiting(number)
    }

    /// Makes `Clean` pages `Dirty`. The caller then lifts their write protection, before it releases the pager's lock.
    pub(crate) fn allow_writes(&mut self, pages: Range<PageNumber>) {
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Clean, "page {number} becomes writable");
            page.state = PageState::Dirty;
        }
    }

    /// Makes `Zero` pages that the program used before they became far memory `Dirty`.
    pub(crate) fn adopt(&mut self, pages: Range<PageNumber>) {
        self.resident += pages.len();
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Zero, "page {number} is adopted");
            (page.state, page.differs) = (PageState::Dirty, true);
        }
    }
}

/// Transitions by which pages leave local memory.
impl PageTable {
    /// Makes resident pages `Leaving`, which were chosen from `part` of the replacement queue. Threads that touch them
    /// wait.
    pub(crate) fn begin_evict(&mut self, pages: Range<PageNumber>, part: Protection) {
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            let resident = matches!(page.state, PageState::Clean | PageState::Dirty);
            debug_assert!(resident && !page.in_write, "page {number} is evicted: {page:?}");
            page.state = PageState::Leaving;
            page.from_protected = part == Protection::Protected;
        }
    }

    /// Makes `Leaving` pages `SwappedOut` if the store holds their contents, otherwise `Zero`; `clock` is the eviction
    /// clock. Returns the number of pages that the store holds.
    pub(crate) fn end_evict(&mut self, pages: Range<PageNumber>, clock: u32) -> usize {
        let mut stored = 0;
        self.resident -= pages.len();
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Leaving, "page {number} was evicted");
            let holds = page.stored && !page.unwanted;
            page.state = if holds { PageState::SwappedOut } else { PageState::Zero };
            page.evicted_at = clock;
            stored += usize::from(holds);
        }
        stored
    }

    /// Makes `Leaving` pages `Filling` while their write is in flight: they are filled from the copy that is being
    /// written.
    pub(crate) fn begin_refill(&mut self, pages: Range<PageNumber>) {
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Leaving, "page {number} is filled again");
            (page.state, page.in_write) = (PageState::Filling, true);
        }
    }

    /// Notes that the write of a page has ended. Returns whether the page was filled again while the write was in
    /// flight.
    pub(crate) fn end_write(&mut self, number: PageNumber) -> bool {
        core::mem::take(&mut self.entries[number].in_write)
    }

    /// Makes `Leaving` pages that could not be evicted resident again, in the given `state`.
    pub(crate) fn cancel_evict(&mut self, pages: Range<PageNumber>, state: PageState) {
        debug_assert!(matches!(state, PageState::Clean | PageState::Dirty), "{state:?} after an eviction");
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            debug_assert_eq!(page.state, PageState::Leaving, "page {number} stays");
            page.state = state;
        }
    }

    /// Makes a page whose contents are dropped `Leaving`, and returns its state before. `Outside` pages stay as they
    /// are.
    pub(crate) fn begin_drop(&mut self, number: PageNumber) -> PageState {
        let page = &mut self.entries[number];
        let before = page.state;
        debug_assert!(!before.in_flight() && !page.in_write, "page {number} is dropped: {page:?}");
        if before != PageState::Outside {
            page.state = PageState::Leaving;
            self.resident -= usize::from(before.is_resident());
        }
        before
    }

    /// Forgets pages that are near again, of which none is swapped out or in flight: they are `Zero`, as before they
    /// became far. Returns how many were resident.
    pub(crate) fn forget(&mut self, pages: Range<PageNumber>) -> usize {
        let mut resident = 0;
        for (number, page) in pages.clone().zip(&mut self.entries[pages]) {
            let kept = page.state == PageState::SwappedOut || page.is_busy();
            debug_assert!(!kept, "page {number} is forgotten: {page:?}");
            resident += usize::from(page.state.is_resident());
            *page = PageEntry::default();
        }
        self.resident -= resident;
        resident
    }

    /// Makes a page whose contents were dropped `Zero` or `Outside`, as `then` says. `Outside` pages stay as they are.
    pub(crate) fn end_drop(&mut self, number: PageNumber, then: PageState) {
        let page = &mut self.entries[number];
        let outside = page.state == PageState::Outside;
        debug_assert!(outside || page.state == PageState::Leaving, "page {number} was dropped: {page:?}");
        *page = PageEntry {
            state: if outside { PageState::Outside } else { then },
            waited_for: page.waited_for,
            ..PageEntry::default()
        };
    }
}

/// The table's knowledge of the contents of pages: whether the store holds them, and whether the program still needs
/// them.
impl PageTable {
    /// Notes the `contents` of consecutive pages from `first` on, which the store now holds unless they have no
    /// checksum.
    pub(crate) fn note_contents(&mut self, first: PageNumber, contents: &[Contents]) {
        for (page, contents) in self.entries[first..first + contents.len()].iter_mut().zip(contents) {
            page.changed = if contents.changed { 2 } else { page.changed.saturating_sub(1) };
            page.differs |= contents.changed;
            page.stored = contents.sum.is_some();
            page.sum = contents.sum.unwrap_or(0);
        }
    }

    /// Notes that `Clean` pages are evicted, and so were not changed while they were resident.
    pub(crate) fn note_unchanged(&mut self, pages: Range<PageNumber>) {
        self.entries[pages].iter_mut().for_each(|page| page.changed = page.changed.saturating_sub(1));
    }

    /// Notes that the store's contents of these pages are undefined, after a write that failed.
    pub(crate) fn forget_stored(&mut self, pages: Range<PageNumber>) {
        self.entries[pages].iter_mut().for_each(|page| page.stored = false);
    }

    /// Sets whether the program needs the contents of a page.
    pub(crate) fn set_wanted(&mut self, number: PageNumber, wanted: bool) {
        self.entries[number].unwanted = !wanted;
    }

    /// Makes a `SwappedOut` page whose contents the program does not need `Zero`, so that they are never read. Returns
    /// whether it did.
    pub(crate) fn forget_unwanted(&mut self, number: PageNumber) -> bool {
        let page = &mut self.entries[number];
        let forget = page.unwanted && page.state == PageState::SwappedOut;
        if forget {
            *page = PageEntry { unwanted: true, ..PageEntry::default() };
        }
        forget
    }
}

/// The table's knowledge of changes since a moment.
///
/// A missing page has the contents that the store has. They are those of that moment if the store had them then, since
/// the page was missing or `Clean`, and no write to the store has changed them since. A page that was `Dirty` may have
/// had other contents than the store, and so may one in flight.
impl PageTable {
    /// Begins to watch pages for changes of their contents.
    pub(crate) fn watch(&mut self, pages: Range<PageNumber>) {
        for page in &mut self.entries[pages] {
            let differs = page.state == PageState::Dirty || page.is_busy();
            // Entries that were never written take no memory.
            if page.differs != differs {
                page.differs = differs;
            }
        }
    }

    /// Returns whether a page is in the store and not resident, with the contents that it had at the last
    /// [`watch`](PageTable::watch).
    pub(crate) fn is_unchanged(&self, number: PageNumber) -> bool {
        let page = &self.entries[number];
        page.state == PageState::SwappedOut && !page.differs
    }
}

impl<I: SliceIndex<[PageEntry]>> Index<I> for PageTable {
    type Output = I::Output;

    fn index(&self, pages: I) -> &I::Output {
        &self.entries[pages]
    }
}
