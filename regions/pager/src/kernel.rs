//! What the pager asks of the system. The real one is userfaultfd; tests bring a simulated one.

mod linux;

use crate::{FillOrder, PagerError};
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;

pub use linux::Linux;

/// What is done with pages that left, from a page on.
pub type Show<'a> = &'a mut dyn FnMut(PageNumber, &[u8]) -> Result<(), PagerError>;

/// Puts what pages hold into the room for them.
pub type Fetch<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), PagerError>;

/// Pages of the program, by number.
pub trait Kernel: Send + Sync {
    /// Bytes of a page.
    fn page(&self) -> usize;

    /// Put `bytes` into missing pages from `first` on, protected against writing if asked. Nobody is woken.
    fn fill(&self, first: PageNumber, bytes: &[u8], protect: bool) -> Result<(), FaultError>;

    /// Frames of so many pages that left may wait for pages that come.
    fn keep(&self, _pages: usize) {}

    /// Whether so many pages come together in frames of others that left. They may be written to at once, since what was
    /// changed is found when it leaves; so may all that are to give their frames in turn.
    fn reuses(&self, _pages: usize) -> bool {
        false
    }

    /// Fill missing pages, which may be written to, with what `fetch` puts into the room for them. `spare` is room for all,
    /// where there is no better.
    fn page_in(&self, order: &FillOrder, spare: &mut [u8], fetch: Fetch<'_>) -> Result<(), PagerError> {
        copied(self, order, spare, fetch)
    }

    /// Writes to resident pages stop and are told (`on`), or go on; who waited does once it is woken.
    fn protect(&self, pages: Range<PageNumber>, on: bool) -> Result<(), FaultError>;

    /// Take resident pages from the program, in one step for whoever uses them: the next touch is a fault. What
    /// they held is shown, in parts. What is not shown stays: a device may be writing to it.
    fn take(&self, pages: Range<PageNumber>, show: Show<'_>) -> Result<(), PagerError>;

    /// Forget resident pages, together; the next touch is a fault.
    fn forget(&self, pages: &[Range<PageNumber>]) -> Result<(), FaultError>;

    /// Which of some resident pages, in flight, are all zero now. A hint: the program may write to them meanwhile.
    fn zeros(&self, pages: Range<PageNumber>) -> Vec<bool>;

    /// Who waits for the pages tries again.
    fn wake(&self, pages: Range<PageNumber>);

    /// Faults are to be served on the processor of the thread that waits, if that can be (`on_cpu.rs`).
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
