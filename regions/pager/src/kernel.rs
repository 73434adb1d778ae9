//! The operations on pages that the pager needs of the kernel: of Linux with userfaultfd (`kernel/linux.rs`), or of a
//! simulated kernel in tests.

mod linux;

use crate::PagerError;
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;

pub use linux::Linux;

/// Receives the contents of consecutive pages, from the given page on, that were taken from the program.
pub type Show<'a> = &'a mut dyn FnMut(PageNumber, &[u8]) -> Result<(), PagerError>;

/// Writes the contents of pages into the given bytes.
pub type Fetch<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), PagerError>;

/// The order in which the pages of one fill are put in place, and when the faulting thread is woken.
#[derive(Debug)]
pub struct FillOrder {
    range: Range<PageNumber>,
    /// The parts of `range`, in the order in which they are put in place.
    parts: [Range<PageNumber>; 3],
    /// Pages whose threads are woken as soon as these are in place, while the others are filled.
    woken: Range<PageNumber>,
}

impl FillOrder {
    /// Orders the fill of `range`: `first`, a part of it, before the others. Threads that wait for the pages `woken`
    /// are woken as soon as these are in place.
    pub(crate) fn new(
        range: &Range<PageNumber>,
        first: Range<PageNumber>,
        woken: Range<PageNumber>,
    ) -> FillOrder {
        let parts = [first.clone(), range.start..first.start, first.end..range.end];
        FillOrder { range: range.clone(), parts, woken }
    }

    /// Returns all pages of the fill.
    #[must_use]
    pub fn range(&self) -> Range<PageNumber> {
        self.range.clone()
    }

    /// Calls `put` for one part after the other, and `wake` as soon as the pages are in place whose threads continue at
    /// once.
    pub fn each(
        &self,
        mut put: impl FnMut(&Range<PageNumber>) -> Result<(), FaultError>,
        wake: impl Fn(Range<PageNumber>),
    ) -> Result<(), FaultError> {
        for part in self.parts.iter().filter(|part| !part.is_empty()) {
            put(part)?;
            if !self.woken.is_empty() && part.contains(&self.woken.start) {
                wake(self.woken.clone());
            }
        }
        Ok(())
    }
}

/// The program's pages in the kernel, by number.
pub trait Kernel: Send + Sync {
    /// Returns the size of a page in bytes.
    fn page(&self) -> usize;

    /// Fills missing pages from `first` on with `bytes`, and write-protects them if `protect` says so. Wakes no thread.
    fn fill(&self, first: PageNumber, bytes: &[u8], protect: bool) -> Result<(), FaultError>;

    /// Keeps up to `_pages` frames of evicted pages for later fills.
    fn keep(&self, _pages: usize) {}

    /// Returns whether a fill of `_pages` pages can use frames of evicted pages. Such pages are writable at once:
    /// whether they were changed is found by their checksums when they are evicted.
    fn reuses(&self, _pages: usize) -> bool {
        false
    }

    /// Fills missing pages, writable, with the contents that `fetch` provides: directly in frames of evicted pages, or
    /// in `spare`, which has room for all of them.
    fn page_in(&self, order: &FillOrder, spare: &mut [u8], fetch: Fetch<'_>) -> Result<(), PagerError> {
        copied(self, order, spare, fetch)
    }

    /// Write-protects resident pages (`on`), so that a write is a fault, or lifts the protection. Wakes no thread.
    fn protect(&self, pages: Range<PageNumber>, on: bool) -> Result<(), FaultError>;

    /// Takes resident pages from the program, each in one step for all threads: the next touch is a fault. Passes their
    /// contents to `show`, in parts. Pages that are not shown stay resident, because a device may be writing to them.
    fn take(&self, pages: Range<PageNumber>, show: Show<'_>) -> Result<(), PagerError>;

    /// Drops resident pages, all in one call; the next touch is a fault.
    fn forget(&self, pages: &[Range<PageNumber>]) -> Result<(), FaultError>;

    /// Returns for each of some resident pages whether all its bytes are zero. A hint: the program may be writing to
    /// them.
    fn zeros(&self, pages: Range<PageNumber>) -> Vec<bool>;

    /// Wakes the threads that wait for faults on the pages.
    fn wake(&self, pages: Range<PageNumber>);

    /// Asks for faults to be handled on the faulting CPU, where that is possible (`on_cpu.rs`), or no longer.
    fn serve_on_cpu(&self, _wanted: bool) {}
}

/// Fills missing pages from `spare`.
fn copied<K: Kernel + ?Sized>(
    kernel: &K,
    order: &FillOrder,
    spare: &mut [u8],
    fetch: Fetch<'_>,
) -> Result<(), PagerError> {
    fetch(spare)?;
    let (first, page) = (order.range().start, kernel.page());
    let at = |number: PageNumber| (number - first) * page;
    Ok(order.each(
        |it| kernel.fill(it.start, &spare[at(it.start)..at(it.end)], false),
        |woken| kernel.wake(woken),
    )?)
}
