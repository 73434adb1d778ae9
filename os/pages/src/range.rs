//! Reserves address ranges, and commits parts of them.

use crate::{Area, MapError, MapOp, PageKind, Placement, sys};
use core::ptr::NonNull;

/// Size in bytes of a span, the unit in which memory is committed: that of a large page, 2 MiB.
pub const SPAN: usize = 2 << 20;

/// A reserved address range, which has no memory until [`commit`](Reserved::commit). Dropping it unmaps the range.
///
/// ```
/// use largesse_pages::{PageKind, Reserved, SPAN};
/// let range = Reserved::new(8 * SPAN, SPAN)?;
/// range.commit(0, SPAN, PageKind::Thp)?;
/// // SAFETY: the first span was committed above.
/// unsafe { range.start().write(1) };
/// # Ok::<(), largesse_pages::MapError>(())
/// ```
#[derive(Debug)]
pub struct Reserved {
    area: Area,
    /// Whether dropping this unmaps the range.
    owns: bool,
}

impl core::ops::Deref for Reserved {
    type Target = Area;

    fn deref(&self) -> &Area {
        &self.area
    }
}

impl Reserved {
    /// Reserves `len` bytes (a multiple of [`SPAN`]) at a multiple of `align` (a power of two of at least a page).
    pub fn new(len: usize, align: usize) -> Result<Reserved, MapError> {
        debug_assert!(align.is_power_of_two() && len.is_multiple_of(SPAN));
        let start = sys::reserve(len, align).map_err(|errno| MapError { op: MapOp::Reserve, len, errno })?;
        Ok(Reserved { area: Area::new(start, len), owns: true })
    }

    /// Returns a second handle to a range that is never unmapped, with which another part of the process can commit
    /// memory.
    #[must_use]
    pub fn shared(&'static self) -> Reserved {
        Reserved { area: self.area, owns: false }
    }

    /// Makes `[offset, offset + len)` accessible. The parts that were not committed before read as zero. Pages are
    /// allocated at first touch, except hugetlb pages: these are taken from the pool now, so that an empty pool is an
    /// error here and not `SIGBUS` later.
    pub fn commit(&self, offset: usize, len: usize, kind: PageKind) -> Result<(), MapError> {
        sys::commit(self.at(offset, len), len, kind).map_err(|errno| MapError {
            op: MapOp::Commit,
            len,
            errno,
        })
    }

    /// Sets the NUMA policy of pages that are touched from now on in `[offset, offset + len)`.
    pub fn place(&self, offset: usize, len: usize, placement: Placement) -> Result<(), MapError> {
        sys::place(self.at(offset, len), len, placement).map_err(|errno| MapError {
            op: MapOp::Place,
            len,
            errno,
        })
    }

    /// Locks the pages of a committed range in memory, each page from its first touch on.
    pub fn lock(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::lock(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Lock, len, errno })
    }

    /// Populates a committed range without changing its contents (Linux 5.14).
    pub fn populate(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::populate(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Populate, len, errno })
    }

    /// Returns the pages of a committed range to the kernel; the range stays accessible and reads as zero.
    ///
    /// # Safety
    /// Nothing uses the contents of the range.
    pub unsafe fn purge(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::purge(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
    }

    /// Sets the kind of page that later first touches in a committed range get: [`PageKind::Thp`],
    /// [`PageKind::Medium`] or [`PageKind::Small`].
    pub fn advise(&self, offset: usize, len: usize, kind: PageKind) -> Result<(), MapError> {
        sys::advise(self.at(offset, len), len, kind).map_err(|errno| MapError {
            op: MapOp::Advise,
            len,
            errno,
        })
    }

    /// Puts the contents of committed spans on large pages, as far as the kernel has some (Linux 6.1). Contents do not
    /// change, and threads may use them during the call; pages without contents get memory, too.
    pub fn collapse(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::collapse(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Populate, len, errno })
    }

    /// Has the kernel forget that pages of a range were used. `Referenced` in `/proc/PID/smaps` counts the pages that
    /// are used from now on. Contents do not change, and large pages that lie entirely in the range stay large.
    pub fn forget_use(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::forget_use(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Advise, len, errno })
    }

    /// Makes a range a mapping of its own, with an entry in `/proc/PID/smaps`, or joins it with its neighbours again,
    /// as `apart` says. Contents do not change, and threads may use them during the call.
    pub fn set_apart(&self, offset: usize, len: usize, apart: bool) -> Result<(), MapError> {
        sys::set_apart(self.at(offset, len), len, apart).map_err(|errno| MapError {
            op: MapOp::Advise,
            len,
            errno,
        })
    }

    /// Lets the kernel reclaim the pages of a committed range under memory pressure (`MADV_FREE`). Each page holds its
    /// contents or zeros until it is written to, which ends the offer.
    ///
    /// # Safety
    /// Nothing uses the contents of the range.
    pub unsafe fn offer(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::offer(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
    }

    /// Makes an access to the range raise a signal until the range is committed again. The contents are kept.
    pub fn guard(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::guard(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Commit, len, errno })
    }

    /// Returns the pages and the commit charge of a range to the kernel. The range stays reserved.
    ///
    /// # Safety
    /// Nothing uses the range.
    pub unsafe fn decommit(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::decommit(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
    }

    /// Moves the pages of one committed range to another by changing page tables only. The former contents of the
    /// target are lost. The source stays accessible and reads as zero.
    ///
    /// # Safety
    /// Nothing uses the contents of `[to, to + len)`, and the caller alone uses the source. The ranges do not overlap.
    pub unsafe fn relocate(&self, from: usize, to: usize, len: usize) -> Result<(), MapError> {
        sys::relocate(self.at(from, len), self.at(to, len), len).map_err(|errno| MapError {
            op: MapOp::Relocate,
            len,
            errno,
        })
    }

    /// Replaces hugetlb pages by ordinary ones with the same contents, in place. A page may be missing, because
    /// another process that shares it wrote to it while the pool was empty. `lost(to, from, len)` must then fetch its
    /// contents.
    ///
    /// # Safety
    /// Nothing else reads or writes the range during the call. (In a forked child, the caller is its only thread.)
    pub unsafe fn demote(
        &self,
        offset: usize,
        len: usize,
        lost: &mut dyn FnMut(NonNull<u8>, usize, usize) -> bool,
    ) -> Result<(), MapError> {
        // SAFETY: the caller promises that nothing else uses the range during the call.
        unsafe { sys::demote(self.at(offset, len), len, lost) }.map_err(|errno| MapError {
            op: MapOp::Relocate,
            len,
            errno,
        })
    }

    /// Returns whether any page of the range is resident.
    #[must_use]
    pub fn any_resident(&self, offset: usize, len: usize) -> bool {
        sys::any_resident(self.at(offset, len), len)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.owns {
            sys::release(self.start(), self.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purged_memory_reads_as_zero() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(SPAN, SPAN, PageKind::Small).unwrap();
        // SAFETY: the second span is committed and only this test uses it.
        unsafe {
            let byte = range.start().add(SPAN + 5000);
            byte.write(7);
            range.purge(SPAN, SPAN).unwrap();
            assert_eq!(byte.read(), 0);
        }
    }

    #[test]
    fn dropped_share_keeps_the_range() {
        extern crate std;
        let range: &'static Reserved =
            std::boxed::Box::leak(std::boxed::Box::new(Reserved::new(SPAN, SPAN).unwrap()));
        range.commit(0, SPAN, PageKind::Small).unwrap();
        // SAFETY: the span is committed and only this test uses it.
        unsafe { range.start().write(7) };
        drop(range.shared());
        // SAFETY: as above.
        assert_eq!(unsafe { range.start().read() }, 7);
    }

    #[test]
    fn offered_memory_is_usable_again() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(SPAN, SPAN, PageKind::Small).unwrap();
        // SAFETY: the second span is committed and only this test uses it.
        unsafe {
            let byte = range.start().add(SPAN + 5000);
            byte.write(7);
            range.offer(SPAN, SPAN).unwrap();
            assert!(matches!(byte.read(), 0 | 7), "an offered page holds {}", byte.read());
            byte.write(8);
            assert_eq!(byte.read(), 8);
        }
    }

    #[test]
    fn relocation_moves_contents_leaves_zeros() {
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(0, 4 * SPAN, PageKind::Small).unwrap();
        // SAFETY: all four spans are committed and only this test uses them.
        unsafe {
            range.start().add(10).write(9);
            range.relocate(0, 2 * SPAN, SPAN).unwrap();
            assert_eq!(range.start().add(2 * SPAN + 10).read(), 9);
            assert_eq!(range.start().add(10).read(), 0);
        }
    }

    /// Moves several mappings at once. Linux before 6.17 moves one mapping at a time, and unmaps the target before it
    /// notices that there are more. A span becomes a mapping of its own if it was moved before or advised.
    #[test]
    fn separate_mappings_relocate_together() {
        if cfg!(miri) {
            return; // there are no mappings under Miri
        }
        let range = Reserved::new(16 * SPAN, SPAN).unwrap();
        range.commit(0, 16 * SPAN, PageKind::Small).unwrap();
        range.commit(2 * SPAN, SPAN, PageKind::Thp).unwrap();
        for span in 0..4 {
            // SAFETY: the spans are committed and only this test uses them.
            unsafe { range.start().add(span * SPAN + 10).write(u8::try_from(span).unwrap() + 1) };
        }
        // SAFETY: as above.
        unsafe { range.relocate(0, 8 * SPAN, 4 * SPAN) }.unwrap();
        for span in 0..4 {
            // SAFETY: as above.
            let [moved, left] = [8, 0].map(|at| unsafe { range.start().add((at + span) * SPAN + 10).read() });
            assert_eq!((usize::from(moved), left), (span + 1, 0), "span {span}");
        }
    }

    /// Runs in a child process, because memory of another test's thread could be placed in the hole that a refused
    /// move leaves.
    #[test]
    #[cfg(not(miri))]
    fn refused_move_changes_nothing() {
        assert!(crate::child::in_child(|| {
            let Ok(range) = Reserved::new(16 * SPAN, SPAN) else { return false };
            if range.commit(0, 16 * SPAN, PageKind::Small).is_err() {
                return false;
            }
            // SAFETY: the spans are committed and only this test uses them.
            let [source, target] = unsafe { [range.start().add(SPAN), range.start().add(9 * SPAN)] };
            // SAFETY: as above.
            unsafe { (source.write(7), target.write(8)) };
            // A hole in the source, which no caller has: every version of Linux refuses this.
            sys::release(range.start(), SPAN);
            // SAFETY: as above.
            let moved = unsafe { range.relocate(0, 8 * SPAN, 4 * SPAN) };
            // SAFETY: as above; if the move left a hole, the child dies here.
            unsafe {
                range.start().add(8 * SPAN).write(1);
                moved.is_err() && (source.read(), target.read()) == (7, 8)
            }
        }));
    }

    #[test]
    fn only_touched_spans_are_resident() {
        if cfg!(miri) {
            return; // Miri's substitute for the kernel has no residency
        }
        let range = Reserved::new(4 * SPAN, SPAN).unwrap();
        range.commit(0, 4 * SPAN, PageKind::Small).unwrap();
        // SAFETY: the span is committed.
        unsafe { range.start().add(SPAN).write(1) };
        assert!(range.any_resident(SPAN, SPAN));
        assert!(!range.any_resident(2 * SPAN, SPAN));
    }

    #[test]
    fn refused_pool_keeps_reservation() {
        if cfg!(miri) {
            return; // Miri has no other mappings
        }
        let range = Reserved::new(4096 * SPAN, SPAN).unwrap();
        // No test machine has a free pool of 8 GiB.
        assert!(range.commit(0, 4096 * SPAN, PageKind::Hugetlb).is_err());
        let start = range.start().as_ptr().addr();
        let other = crate::map_aligned(4096 * SPAN, SPAN, libc::PROT_READ, 0).unwrap();
        assert!(!(start..start + 4096 * SPAN).contains(&other.addr()), "a hole was left");
        range.commit(0, SPAN, PageKind::Thp).unwrap();
        // SAFETY: the span was committed above.
        unsafe { range.start().write(1) };
    }

    #[test]
    #[should_panic(expected = "outside of the range")]
    fn range_beyond_end_is_refused() {
        let range = Reserved::new(SPAN, SPAN).unwrap();
        let _ = range.commit(SPAN, SPAN, PageKind::Small);
    }
}
