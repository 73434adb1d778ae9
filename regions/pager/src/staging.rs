//! Where pages are on their way out, between the program and the store.
//!
//! A page that leaves is *moved*, in one step for everybody who uses it: the program waits at its next touch,
//! and the kernel refuses when a device may be writing to the page (direct I/O, io_uring), so that nothing of
//! what comes in is lost. What cannot be moved is protected against writing, copied and forgotten: pages that
//! the program itself may not write to (a collector's barrier, a guard), and all pages before Linux 6.8.

mod frames;

pub(crate) use frames::Frames;

use crate::PagerError;
use crate::lock::{RankedGuard, RankedMutex, STAGING};
use core::sync::atomic::{AtomicUsize, Ordering};
use largesse_pages::fault::{FaultError, MoveError, Userfault, read_guarded};
use largesse_pages::{PageKind, Reserved, SPAN, Table, base_page};
use largesse_policy::MAX_TRANSFER;

/// Threads that may carry pages out at the same time; more wait.
const LANES: usize = 8;
/// Most pages of a lane whose frames wait for pages that come.
const MOST_KEPT: usize = MAX_TRANSFER;
/// When there are so many more the rest goes, together: each time that pages are unmapped interrupts other processors.
const BATCH: usize = 64;
/// Pages of a lane.
const LANE: usize = MOST_KEPT + BATCH + MAX_TRANSFER;

/// What is done with pages that left, from an offset on.
pub(crate) type Show<'a> = &'a mut dyn FnMut(usize, &[u8]) -> Result<(), PagerError>;

/// Room for the largest set, for each of a few threads.
#[derive(Debug)]
pub(crate) struct Staging {
    /// For pages that are moved: one part a lane.
    range: Reserved,
    /// A lane is its holder's.
    lanes: [RankedMutex<Lane, STAGING>; LANES],
    moves: bool,
    /// Pages of a lane whose frames wait for pages that come.
    kept: AtomicUsize,
}

/// The lock of a lane, held.
type LaneGuard<'a> = RankedGuard<'a, Lane, STAGING>;

#[derive(Debug)]
struct Lane {
    /// For pages that are copied.
    copies: Table<u8>,
    /// Bytes from the lane's start on in which pages were shown that are still there, all of them.
    shown: usize,
}

impl Staging {
    pub(crate) fn new() -> Result<Staging, FaultError> {
        let len = (LANES * LANE * base_page()).next_multiple_of(SPAN);
        let refused = |error: largesse_pages::MapError| FaultError(error.errno);
        let range = Reserved::new(len, SPAN).map_err(refused)?;
        range.commit(0, len, PageKind::Small).map_err(refused)?;
        let mut lanes = Vec::with_capacity(LANES);
        for _ in 0..LANES {
            let copies = Table::new(MAX_TRANSFER * base_page()).ok_or(FaultError(libc::ENOMEM))?;
            lanes.push(RankedMutex::new(Lane { copies, shown: 0 }));
        }
        let lanes = lanes.try_into().map_err(|_| FaultError(libc::ENOMEM))?;
        Ok(Staging { range, lanes, moves: false, kept: AtomicUsize::new(0) })
    }

    /// Pages can be moved to registered ranges only.
    pub(crate) fn register(&self, faults: &Userfault) -> Result<(), FaultError> {
        faults.register(self.range.start().as_ptr().addr(), self.range.len())
    }

    /// Whether the kernel moves pages (Linux 6.8 and later): one is moved.
    pub(crate) fn try_moving(&mut self, faults: &Userfault) -> Result<(), FaultError> {
        let (page, at) = (base_page(), self.range.start().as_ptr().addr());
        faults.fill(at, &vec![1; page], false)?;
        self.moves = faults.take(at, at + page, page) == (page, None);
        // SAFETY: nobody uses the lanes yet.
        unsafe { self.range.purge(0, 2 * page) }.map_err(|error| FaultError(error.errno))
    }

    /// Pages are moved: those that a device writes to are known.
    pub(crate) const fn moves(&self) -> bool {
        self.moves
    }

    /// From now on frames of so many pages that left wait for pages that come, in each lane.
    pub(crate) fn keep(&self, pages: usize) {
        self.kept.store(pages.min(MOST_KEPT), Ordering::Relaxed);
    }

    /// Where a lane begins.
    fn start_of(&self, number: usize) -> usize {
        self.range.start().as_ptr().addr() + number * LANE * base_page()
    }

    /// A lane with its place in the range.
    fn lane(&self) -> (LaneGuard<'_>, usize) {
        for (number, lane) in self.lanes.iter().enumerate() {
            if let Some(free) = lane.try_lock() {
                return (free, self.start_of(number));
            }
        }
        (self.lanes[0].lock(), self.start_of(0))
    }

    /// Takes resident pages from the program, and shows what they held. What is not shown stays.
    pub(crate) fn take(
        &self,
        faults: &Userfault,
        from: usize,
        len: usize,
        show: Show<'_>,
    ) -> Result<(), PagerError> {
        let (mut lane, start) = self.lane();
        let page = base_page();
        let (mut done, mut most, mut cleared) = (0, len, None);
        while done < len {
            let part = most.min(len - done);
            let to = start + lane.shown;
            let (moved, why) =
                if self.moves { faults.take(from + done, to, part) } else { (0, Some(MoveError::Guarded)) };
            if moved > 0 {
                lane.shown += moved;
                let at = core::ptr::with_exposed_provenance::<u8>(to);
                // SAFETY: pages of this lane, which is ours, and they were moved there just now.
                show(done, unsafe { core::slice::from_raw_parts(at, moved) })?;
                done += moved;
            }
            let to = start + lane.shown;
            match why {
                None => {}
                Some(MoveError::Pinned) => done += page,
                // The rest may lie in several mappings.
                Some(MoveError::Guarded) if self.moves && part > page => most = page,
                Some(MoveError::Guarded) => {
                    if copy(faults, from + done, &mut lane.copies[..part])? {
                        show(done, &lane.copies[..part])?;
                    }
                    done += part;
                }
                // The program gave the page back by a system call of its own.
                Some(MoveError::Missing) => {
                    lane.copies[..page].fill(0);
                    show(done, &lane.copies[..page])?;
                    done += page;
                }
                // Linux 6.18 keeps its "try again" over the try that succeeds (`move_pages` sets `err` and never clears it): it
                // does not count what that moved, and finds the place taken. So if the page is not where it was, what is here is
                // that page. If it is, what is here is nobody's; that was never seen.
                Some(MoveError::Occupied) if !are_here(from + done, page) => {
                    lane.shown += page;
                    let at = core::ptr::with_exposed_provenance::<u8>(to);
                    // SAFETY: a page of this lane, and it is there, says the kernel.
                    show(done, unsafe { core::slice::from_raw_parts(at, page) })?;
                    done += page;
                }
                Some(MoveError::Occupied) if cleared != Some(done) => {
                    cleared = Some(done);
                    let at = core::ptr::with_exposed_provenance_mut(to);
                    // SAFETY: the rest of the lane, beyond what was shown.
                    unsafe { largesse_pages::forget(at, len - done) }.map_err(|it| FaultError(it.errno))?;
                }
                Some(MoveError::Occupied) => return Err(FaultError(libc::EEXIST).into()),
                Some(MoveError::Refused(error)) => return Err(error.into()),
            }
        }
        // Relaxed: a number by itself.
        let kept = self.kept.load(Ordering::Relaxed) * page;
        if lane.shown > kept + BATCH * page {
            let at = core::ptr::with_exposed_provenance_mut(start + kept);
            // SAFETY: the pages are the lane's, and were shown.
            unsafe { largesse_pages::forget(at, lane.shown - kept) }.map_err(|it| FaultError(it.errno))?;
            lane.shown = kept;
        }
        Ok(())
    }
}

/// Whether the program's pages are where they were.
pub(crate) fn are_here(at: usize, len: usize) -> bool {
    let mut here = 0;
    largesse_pages::each_resident(core::ptr::with_exposed_provenance_mut(at), len, &mut |_| {
        here += base_page()
    });
    here == len
}

/// Copies pages and forgets them. `false`: they cannot be read, and stay.
fn copy(faults: &Userfault, at: usize, into: &mut [u8]) -> Result<bool, PagerError> {
    faults.protect(at, into.len(), true)?;
    if !read_guarded(at, into) {
        faults.protect(at, into.len(), false)?;
        return Ok(false);
    }
    let pages = core::ptr::with_exposed_provenance_mut(at);
    // SAFETY: the pages are far memory that is leaving: a touch is a fault that waits.
    unsafe { largesse_pages::forget(pages, into.len()) }.map_err(|error| FaultError(error.errno))?;
    Ok(true)
}

#[cfg(test)]
mod tests;
