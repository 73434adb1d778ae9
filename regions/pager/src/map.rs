//! Mappings of the program in far memory: what `mmap`, `munmap`, `madvise` and `mremap` do to far memory.
//!
//! Mappings have a reserved range of their own. Its unmapped parts are inaccessible, and have no room in the store. So
//! are parts that the program has only reserved, until it makes them usable.
//! Some calls apply to all of far memory: to blocks of a heap and to static arrays, too.

use crate::lock::{MAPPINGS, RankedGuard};
use crate::mappings::Mappings;
use crate::{FarMemory, PagerError};
use core::ops::Range;
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

    /// Maps `len` bytes (a multiple of the page size) of far memory, which read as zero. Returns their address: `hint`,
    /// if that is free, otherwise the lowest one.
    pub fn map(&self, len: usize, hint: usize) -> Result<usize, NoMapping> {
        let mut mappings = self.mappings();
        let part = mappings.free(len, hint).ok_or(NoMapping::NoAddresses)?;
        self.take(&mut mappings, &part)?;
        Ok(mappings.start() + part.start)
    }

    /// Reserves `len` bytes, which are inaccessible and have no room in the store until [`use_reserved`]. Returns their
    /// address, as [`map`](FarMemory::map).
    ///
    /// [`use_reserved`]: FarMemory::use_reserved
    pub fn reserve(&self, len: usize, hint: usize) -> Result<usize, NoMapping> {
        let mut mappings = self.mappings();
        let part = mappings.free(len, hint).ok_or(NoMapping::NoAddresses)?;
        mappings.parts.reserve(&part);
        Ok(mappings.start() + part.start)
    }

    /// Maps the reserved parts of the addresses `at`, and calls `protect`, which makes the addresses accessible.
    /// Without a reserved part it calls `protect` alone.
    pub fn use_reserved<R>(&self, at: &Range<usize>, protect: impl FnOnce() -> R) -> Result<R, PagerError> {
        let mut mappings = self.mappings();
        for part in mappings.parts.reserved_in(&mappings.inside(at)) {
            self.enter(mappings.place.pages(part.start, part.len()))?;
            mappings.parts.take(&part);
            self.mapped_more(mappings.place.first, part.len());
        }
        Ok(protect())
    }

    /// Returns the number of bytes of the addresses `at` that are reserved.
    #[must_use]
    pub fn reserved_bytes(&self, at: &Range<usize>) -> usize {
        let mappings = self.mappings();
        mappings.parts.reserved_bytes(&mappings.inside(at))
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

    /// Maps a free or reserved part of the range of mappings, and marks it as mapped.
    fn take(&self, mappings: &mut Mappings, part: &Range<usize>) -> Result<(), NoMapping> {
        let pages = mappings.place.pages(part.start, part.len());
        self.enter(pages.clone())?;
        if let Err(error) = mappings.place.range.commit(part.start, part.len(), PageKind::Small) {
            self.pager().drop_contents(pages)?;
            return Err(PagerError::System { call: "mprotect", errno: error.errno }.into());
        }
        mappings.parts.take(part);
        self.mapped_more(mappings.place.first, part.len());
        Ok(())
    }

    /// Returns whether all of the addresses `at` are mapped or reserved by calls of this value.
    pub fn is_mapped(&self, at: &Range<usize>) -> bool {
        let mappings = self.mappings();
        let part = mappings.inside(at);
        let far: usize = self.far_inside(&mappings, at).iter().map(Range::len).sum();
        far == at.len() && mappings.parts.known_bytes(&part) == at.len()
    }

    /// Unmaps the addresses `at`: they are inaccessible, and their room in the store is free.
    pub fn unmap(&self, at: &Range<usize>) -> Result<(), PagerError> {
        let mut mappings = self.mappings();
        self.empty(&mut mappings, at)?;
        for part in self.far_inside(&mappings, at) {
            mappings.parts.release(&part);
        }
        Ok(())
    }

    /// Makes the far addresses `at` inaccessible and drops their contents. They are reserved from now on, whether they
    /// were mapped or not.
    pub fn reserve_over(&self, at: &Range<usize>) -> Result<(), PagerError> {
        let mut mappings = self.mappings();
        self.empty(&mut mappings, at)?;
        for part in self.far_inside(&mappings, at) {
            mappings.parts.reserve(&part);
        }
        Ok(())
    }

    /// Makes the mapped parts of the addresses `at` inaccessible, drops their contents, and frees their room in the
    /// store.
    fn empty(&self, mappings: &mut Mappings, at: &Range<usize>) -> Result<(), PagerError> {
        for part in self.taken(mappings, at) {
            // Inaccessible first, so that no thread fills the pages again.
            let _ = mappings.place.range.guard(part.start, part.len());
            self.pager().drop_contents(mappings.place.pages(part.start, part.len()))?;
            mappings.parts.release(&part);
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
        for part in mappings.parts.untaken_in(&mappings.inside(at)) {
            self.take(&mut mappings, &part)?;
        }
        Ok(true)
    }

    /// Returns whether the far addresses `at` lie in the range of mappings: a heap's blocks and static arrays do not.
    pub fn is_in_mappings(&self, at: &Range<usize>) -> bool {
        let mappings = self.mappings();
        mappings.inside(at).len() == at.len() && self.near_parts(at).is_empty()
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
        let ours = mappings.inside(at);
        mappings.parts.take(&ours);
        Ok(map())
    }

    /// Returns the mapped parts of the addresses `at` that are still far, as offsets in the range of mappings.
    pub(crate) fn taken(&self, mappings: &Mappings, at: &Range<usize>) -> Vec<Range<usize>> {
        self.far_inside(mappings, at).iter().flat_map(|part| mappings.parts.taken_in(part)).collect()
    }

    /// Returns the parts of the addresses `at` that are still far, as offsets in the range of mappings.
    fn far_inside(&self, mappings: &Mappings, at: &Range<usize>) -> Vec<Range<usize>> {
        let far = self.pager().kernel().far_in(at);
        far.iter().map(|part| mappings.inside(&offsets(&part))).filter(|part| !part.is_empty()).collect()
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
