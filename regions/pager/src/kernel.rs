//! The operations on pages that the pager needs from the kernel: Linux with userfaultfd (`kernel/linux.rs`), or a
//! simulated kernel in tests.

mod linux;

use crate::PagerError;
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;

pub use linux::Linux;
pub(crate) use linux::OutsideGuard;

/// A callback that receives the contents of consecutive pages taken from the program, and the number of the first one.
pub type Show<'a> = &'a mut dyn FnMut(PageNumber, &[u8]) -> Result<(), PagerError>;

/// A callback that writes the contents of pages into the given bytes.
pub type Fetch<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), PagerError>;

/// The order in which the pages of one fill are put in place, and at which point the faulting thread is woken.
#[derive(Debug)]
pub struct FillOrder {
    range: Range<PageNumber>,
    /// The parts of the fill, in the order in which they are put in place. Some may be empty.
    parts: [Range<PageNumber>; 3],
    /// Pages whose waiting threads are woken as soon as these pages are in place, before the rest of the fill.
    woken: Range<PageNumber>,
}

impl FillOrder {
    /// Makes an order for the fill of `range` that begins with its part `first`. Threads that wait for the pages
    /// `woken` are woken as soon as these pages are in place.
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

    /// Calls `put` for each part of the fill, in the order in which the parts are put in place. Calls `wake` with the
    /// pages whose waiting threads need not wait for the rest of the fill, as soon as these pages are in place.
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

/// The operating system, as far as the pager needs it: fills, protects and takes pages of the program, which have
/// numbers.
pub trait Kernel: Send + Sync {
    /// Returns the size of a page in bytes.
    fn page(&self) -> usize;

    /// Fills missing pages from `first` on with `bytes`, and write-protects them if `protect` is true. Wakes no thread.
    fn fill(&self, first: PageNumber, bytes: &[u8], protect: bool) -> Result<(), FaultError>;

    /// Keeps up to `_pages` frames (physical pages) of evicted pages for later fills.
    fn keep(&self, _pages: usize) {}

    /// Returns whether a fill of `_pages` pages can use frames of evicted pages. Such pages are writable at once: only
    /// their checksums at their eviction show whether they were changed.
    fn reuses(&self, _pages: usize) -> bool {
        false
    }

    /// Fills missing pages, which are then writable, with the contents that `fetch` provides. They are written directly
    /// into frames of evicted pages, or first into `spare`, which has room for all of them.
    fn page_in(&self, order: &FillOrder, spare: &mut [u8], fetch: Fetch<'_>) -> Result<(), PagerError> {
        copied(self, order, spare, fetch)
    }

    /// Write-protects resident pages if `on`, so that a write is a fault; otherwise lifts the protection. Wakes no
    /// thread.
    fn protect(&self, pages: Range<PageNumber>, on: bool) -> Result<(), FaultError>;

    /// Takes resident pages from the program, each in one step for all threads: the next touch is a fault. Passes their
    /// contents to `show`, in parts. Pages that are not passed to it stay resident, because a device may be writing to
    /// them.
    fn take(&self, pages: Range<PageNumber>, show: Show<'_>) -> Result<(), PagerError>;

    /// Drops resident pages, all in one call; the next touch is a fault.
    fn forget(&self, pages: &[Range<PageNumber>]) -> Result<(), FaultError>;

    /// Returns for each of the resident `pages` whether all its bytes are zero. This is a hint: the program may be
    /// writing to them at the same time.
    fn zeros(&self, pages: Range<PageNumber>) -> Vec<bool>;

    /// Wakes the threads that wait for faults on the pages.
    fn wake(&self, pages: Range<PageNumber>);

    /// Sets whether faults should be handled on the faulting CPU, where that is possible (`on_cpu.rs`).
    fn serve_on_cpu(&self, _wanted: bool) {}
}

/// Fetches the contents of missing pages into `spare`, and fills the pages from there.
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
