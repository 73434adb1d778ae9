//! Mappings of the program in far memory: what `mmap`, `munmap`, `madvise` and `mremap` do to far memory.
//!
//! Mappings have a reserved range of their own. Its unmapped parts are inaccessible, and have no room in the store.
//! Some calls apply to all of far memory: to blocks of a heap and to static arrays, too.

use crate::lock::{MAPPINGS, RankedGuard};
use crate::mappings::Mappings;
use crate::{FarMemory, PagerError};
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_pages::{PageKind, base_page};
use largesse_policy::PageNumber;
use largesse_store::PageStore;
use largesse_store::{bytes, offsets};

/// Exclusive access to the program's mappings: no other thread changes them until this is dropped.
pub type HeldMappings<'a> = RankedGuard<'a, Mappings, MAPPINGS>;

/// Why a mapping could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoMapping {
    /// The range has no free part that is long enough.
    NoAddresses,
    /// The store has no room, or the kernel refused to map.
    Refused(PagerError),
}

impl<T: Into<PagerError>> From<T> for NoMapping {
    fn from(error: T) -> NoMapping {
        NoMapping::Refused(error.into())
    }
}

impl<S: PageStore> FarMemory<S> {
    /// Locks the mappings, for a fork: until the guard is dropped, no thread maps or unmaps.
    pub fn mappings(&self) -> HeldMappings<'_> {
        self.mappings.lock()
    }

    /// Returns whether any of the addresses `at` is far.
    pub fn is_far(&self, at: &Range<usize>) -> bool {
        !self.far_parts(at).is_empty()
    }

    /// Returns the parts of the addresses `at` that are not far memory, or no longer.
    pub fn near_parts(&self, at: &Range<usize>) -> Vec<Range<usize>> {
        let near = self.pager().kernel().far_in(at).missing(&bytes(at));
        near.iter().map(|part| offsets(&part)).collect()
    }

    /// Maps `len` bytes (a multiple of the page size) of far memory, which read as zero. Returns their address.
    pub fn map(&self, len: usize) -> Result<usize, NoMapping> {
        let mut mappings = self.mappings();
        let part = mappings.free(len).ok_or(NoMapping::NoAddresses)?;
        self.take(&mut mappings, &part)?;
        Ok(mappings.start() + part.start)
    }

    /// Makes a mapping at `old` longer by `more` bytes, if the part that follows is free.
    pub fn extend(&self, old: &Range<usize>, more: usize) -> Result<(), NoMapping> {
        let mut mappings = self.mappings();
        let end = mappings.inside(old).end;
        let part = end..end.saturating_add(more);
        if !mappings.is_free(&part) {
            return Err(NoMapping::NoAddresses);
        }
        self.take(&mut mappings, &part)
    }

    /// Maps a free part of the range of mappings, and marks it as taken.
    fn take(&self, mappings: &mut Mappings, part: &Range<usize>) -> Result<(), NoMapping> {
        let pages = mappings.place.pages(part.start, part.len());
        self.enter(pages.clone())?;
        if let Err(error) = mappings.place.range.commit(part.start, part.len(), PageKind::Small) {
            self.pager().drop_contents(pages)?;
            return Err(FaultError(error.errno).into());
        }
        mappings.taken.add(bytes(part));
        self.mapped_more(mappings.place.first, part.len());
        Ok(())
    }

    /// Returns whether all of the addresses `at` are mapped by [`map`](FarMemory::map).
    pub fn is_mapped(&self, at: &Range<usize>) -> bool {
        let mappings = self.mappings();
        let part = mappings.inside(at);
        part.len() == at.len() && self.taken(&mappings, at) == [part]
    }

    /// Unmaps the addresses `at`: they are inaccessible, and their room in the store is free.
    pub fn unmap(&self, at: &Range<usize>) -> Result<(), PagerError> {
        let mut mappings = self.mappings();
        for part in self.taken(&mappings, at) {
            // Inaccessible first, so that no thread fills the pages again.
            let _ = mappings.place.range.guard(part.start, part.len());
            self.pager().drop_contents(mappings.place.pages(part.start, part.len()))?;
            mappings.taken.remove(&bytes(&part));
            self.mapped_less(mappings.place.first, part.len());
        }
        Ok(())
    }

    /// Drops the contents of the addresses `at`, which read as zero from now on. Their room in the store stays
    /// reserved.
    pub fn discard(&self, at: &Range<usize>) -> Result<(), PagerError> {
        let mappings = self.mappings();
        let ours = mappings.place.pages(0, mappings.place.range.len());
        let elsewhere = self.far_parts(at).into_iter().filter(|pages| !ours.contains(&pages.start));
        let taken = self.taken(&mappings, at);
        let taken = taken.iter().map(|part| mappings.place.pages(part.start, part.len()));
        for pages in elsewhere.chain(taken) {
            self.pager().drop_contents(pages.clone())?;
            self.enter(pages)?;
        }
        Ok(())
    }

    /// Maps the addresses `at`, whether they were mapped or not, so that they read as zero. Returns `false`, and does
    /// nothing, if not all of them are far.
    pub fn map_over(&self, at: &Range<usize>) -> Result<bool, NoMapping> {
        if !self.near_parts(at).is_empty() {
            return Ok(false);
        }
        self.discard(at)?;
        let mut mappings = self.mappings();
        let inside = bytes(&mappings.inside(at));
        for free in mappings.taken.missing(&inside).iter() {
            self.take(&mut mappings, &offsets(&free))?;
        }
        Ok(true)
    }

    /// Takes the addresses `at` out of far memory for good, and calls `map`, which maps something else there.
    pub fn leave_out<R>(&self, at: &Range<usize>, map: impl FnOnce() -> R) -> Result<R, PagerError> {
        let mut mappings = self.mappings();
        self.mapped_less(mappings.place.first, self.taken(&mappings, at).iter().map(Range::len).sum());
        for pages in self.far_parts(at) {
            self.pager().leave_out(pages.clone())?;
            self.pager().kernel().leave_out(&pages);
        }
        // Marked as mapped, so that they are never mapped again.
        let ours = bytes(&mappings.inside(at));
        mappings.taken.add(ours);
        Ok(map())
    }

    /// Returns the mapped parts of the addresses `at` that are still far, as offsets in the range of mappings.
    fn taken(&self, mappings: &Mappings, at: &Range<usize>) -> Vec<Range<usize>> {
        let far = self.pager().kernel().far_in(at);
        far.iter().flat_map(|part| mappings.taken_in(&mappings.inside(&offsets(&part)))).collect()
    }

    /// Returns the far pages of the addresses `at`.
    fn far_parts(&self, at: &Range<usize>) -> Vec<Range<PageNumber>> {
        let kernel = self.pager().kernel();
        let pages = |part: Range<u64>| {
            let part = offsets(&part);
            let first = kernel.page_at(part.start)?;
            Some(first..first + part.len() / base_page())
        };
        kernel.far_in(at).iter().filter_map(pages).collect()
    }
}
