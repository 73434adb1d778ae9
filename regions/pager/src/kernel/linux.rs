//! Linux: faults are reported by userfaultfd, as messages or as signals.

use super::{Fetch, Kernel, Show, copied};
use crate::doorbell::Doorbell;
use crate::fault_queue::FaultQueue;
use crate::gate::Gate;
use crate::lock::{OUTSIDE, RankedGuard, RankedMutex};
use crate::on_cpu::OnCpuHandler;
use crate::page::{Touch, is_zero};
use crate::staging::{Frames, Staging, are_resident};
use crate::state::IDLE_SLEEP;
use crate::{FillOrder, PagerError, Segments};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use largesse_pages::PageKind;
use largesse_pages::fault::{FaultError, PageFault, Userfault, read_guarded};
use largesse_pages::residency::Inspector;
use largesse_policy::PageNumber;
use largesse_store::{Broker, Ranges, TransferQueue};
use largesse_store::{bytes, offsets};
use std::sync::Arc;
use std::time::Duration;

/// Number of bytes that one check for zero copies to the stack.
const LOOK: usize = 64 << 10;

/// Smallest number of pages whose fill uses frames of evicted pages. For a single page it does not pay: moving one
/// frame into place interrupts other CPUs as often as moving many. A page in a new frame can be `Clean`, and clean
/// pages are dropped many at a time.
const LEAST_REUSED: usize = 2;

/// The lock of the addresses that are no longer far memory, held.
pub(crate) type OutsideGuard<'a> = RankedGuard<'a, Ranges, OUTSIDE>;

/// Linux as the pager's kernel: the segments of far memory, and everything by which their faults are received.
#[derive(Debug)]
pub struct Linux {
    /// The thread in whose descriptor table `faults` is open. If faults are signals, `faults` is also open in the table
    /// of the program's first thread.
    broker: Arc<Broker>,
    /// The userfaultfd descriptor, as a leaked box. A forked child replaces it.
    faults: AtomicPtr<Userfault>,
    segments: Segments,
    /// Addresses inside of segments at which the program mapped something else.
    outside: RankedMutex<Ranges, OUTSIDE>,
    staging: Staging,
    page: usize,
    /// Closed during a fork.
    pub(crate) gate: Gate,
    /// Faults that came as signals, for the handler thread.
    pub(crate) fault_queue: FaultQueue,
    /// State of the on-CPU handler, for faults that come as messages.
    pub(crate) on_cpu: OnCpuHandler,
    /// Asks the handler thread for a page without touching it, where faults come as messages.
    pub(crate) doorbell: Doorbell,
    /// Whether the kernel may read pages of the program after the end of the system call that passed them to it
    /// (`vmsplice`).
    lent: AtomicBool,
}

impl Linux {
    /// Registers the mapped ranges of `segments` with `faults`, without the addresses `outside`, at which the program
    /// mapped something else. The caller has opened `faults` in `broker`'s thread, or in the program's first thread if
    /// faults are signals.
    pub fn new(
        broker: Arc<Broker>,
        faults: Userfault,
        segments: Segments,
        outside: Ranges,
    ) -> Result<Linux, FaultError> {
        let page = largesse_pages::base_page();
        let faults = AtomicPtr::new(Box::into_raw(Box::new(faults)));
        let staging = Staging::new()?;
        let (outside, gate, fault_queue) =
            (RankedMutex::new(outside), Gate::default(), FaultQueue::default());
        let mut kernel = Linux {
            broker,
            faults,
            segments,
            outside,
            staging,
            page,
            gate,
            fault_queue,
            on_cpu: OnCpuHandler::default(),
            doorbell: Doorbell::new()?,
            lent: AtomicBool::new(false),
        };
        if kernel.faults().by_signal() {
            kernel.broker.call(|| kernel.faults().duplicate_here())?;
        }
        kernel.register_all()?;
        // SAFETY: the pointer is that of the box above, and nothing else uses it yet.
        let faults = unsafe { &**kernel.faults.get_mut() };
        kernel.broker.call(|| kernel.staging.try_moving(faults))?;
        Ok(kernel)
    }

    /// Opens a new userfaultfd descriptor in a forked child, and registers the far ranges with it, which the fork
    /// unregistered. Resident pages can be written to until the caller protects them again.
    ///
    /// # Safety
    /// No reference that [`faults`](Linux::faults) returned is in use, and no other thread calls this value until the
    /// function returns. The broker's thread runs only the closures of the calling thread.
    pub(crate) unsafe fn renew(&self) -> Result<(), FaultError> {
        let way = [self.faults().method()];
        let by_signal = self.faults().by_signal();
        let faults = if by_signal {
            Userfault::open_by_signal(&way)?.replace(self.faults())?
        } else {
            self.broker.call(|| Userfault::open(&way))?
        };
        // Release: pairs with the Acquire in `faults`.
        let before = self.faults.swap(Box::into_raw(Box::new(faults)), Ordering::AcqRel);
        // SAFETY: `new` or this function made the pointer of a box, and only the swap above takes it out again. No
        // reference to its contents is in use: the caller promises that for all others, and those above have ended.
        let before = unsafe { Box::from_raw(before) };
        // The descriptor is the parent's: its number means nothing, or another file, in this process.
        core::mem::forget(*before);
        self.staging.descriptors().for_each(core::mem::forget);
        if by_signal {
            self.broker.call(|| self.faults().duplicate_here())?;
        }
        self.register_all()
    }

    fn register_all(&self) -> Result<(), FaultError> {
        self.broker.call(|| self.faults().outlive_threads())?;
        self.broker.call(|| self.staging.register(self.faults()))?;
        self.broker.call(|| self.doorbell.register(self.faults()))?;
        self.parts(&(0..usize::MAX)).iter().try_for_each(|part| self.register(part.start, part.len()))
    }

    /// Registers a mapped range, so that its faults are reported. A child of a raw `clone` does not inherit the range,
    /// because missing pages would read as zeros there. Large pages are not allowed in the range, because one would
    /// fill 512 missing pages at once.
    pub fn register(&self, at: usize, len: usize) -> Result<(), FaultError> {
        let _ =
            largesse_pages::advise_mapping(core::ptr::with_exposed_provenance_mut(at), len, PageKind::Small);
        inherited(at, len, false)?;
        self.broker.call(|| self.faults().register(at, len))
    }

    /// Unregisters all segments, after far memory could not be set up and before any page was evicted. Pages that are
    /// not resident read as zero from now on.
    pub fn release(&self) {
        let parts = self.parts(&(0..usize::MAX));
        // A part that was not registered is refused, which changes nothing.
        self.broker
            .call(|| parts.iter().for_each(|part| _ = self.faults().unregister(part.start, part.len())));
        parts.iter().for_each(|part| _ = inherited(part.start, part.len(), true));
    }

    /// Leaves the faults of a segment to the kernel again, on pages of `kind`: pages that are not resident read as zero
    /// from now on, threads that wait for one continue, and forked children inherit it. `false` if that is refused, or
    /// if the program mapped something else there; an error if it is also refused to undo a part of it. The caller lets
    /// no thread serve faults, and no process fork.
    pub(crate) fn make_near(&self, at: &Range<usize>, kind: PageKind) -> Result<bool, FaultError> {
        if self.parts(at) != [at.clone()] || inherited(at.start, at.len(), true).is_err() {
            return Ok(false);
        }
        if self.broker.call(|| self.faults().unregister(at.start, at.len())).is_err() {
            // Perhaps for a part only. All contents are resident, as when the segment was registered first.
            return self.register(at.start, at.len()).map(|()| false);
        }
        self.outside.lock().add(bytes(at));
        // A hint, whose refusal changes speed only.
        let start = core::ptr::with_exposed_provenance_mut(at.start);
        let _ = largesse_pages::advise_mapping(start, at.len(), kind);
        // A thread that was about to wait when the range was unregistered.
        let _ = self.broker.call(|| self.faults().wake(at.start, at.len()));
        Ok(true)
    }

    /// Has the faults of a segment that was made near reported again. The caller lets no thread serve faults until it
    /// has taken over the segment's pages.
    pub(crate) fn make_far(&self, at: &Range<usize>) -> Result<(), FaultError> {
        if let Err(error) = self.register(at.start, at.len()) {
            // Perhaps a part is registered.
            let _ = self.broker.call(|| self.faults().unregister(at.start, at.len()));
            let _ = inherited(at.start, at.len(), true);
            return Err(error);
        }
        self.outside.lock().remove(&bytes(at));
        Ok(())
    }

    /// Returns the parts of a range of addresses, in whole pages, whose pages have contents: in memory, or swapped out
    /// by the kernel.
    pub(crate) fn populated(&self, at: &Range<usize>) -> Result<Vec<Range<usize>>, FaultError> {
        self.broker
            .call(|| {
                let mut parts = Vec::new();
                let asked = Inspector::open(None)?.each_populated(
                    at.start as u64,
                    at.len() as u64,
                    &mut |start, len| {
                        parts.push(offsets(&(start..start + len)));
                    },
                );
                asked.map(|()| parts)
            })
            .map_err(FaultError)
    }

    /// Waits until no thread looks up far addresses, and lets none do it until the guard is dropped: for a fork.
    pub(crate) fn hold_outside(&self) -> OutsideGuard<'_> {
        self.outside.lock()
    }

    #[cfg(test)]
    pub(crate) fn try_hold_outside(&self) -> Option<OutsideGuard<'_>> {
        self.outside.try_lock()
    }

    /// Sets whether a child that is forked from now on inherits the far ranges with their resident pages. The caller
    /// holds the lock of the addresses `outside` of far memory.
    pub(crate) fn let_inherit(&self, outside: &Ranges, yes: bool) -> Result<(), FaultError> {
        let parts = self.parts_without(outside, &(0..usize::MAX));
        parts.iter().try_for_each(|part| inherited(part.start, part.len(), yes))
    }

    /// Returns the far parts of a range of addresses: the parts in segments, without pages that were left out.
    fn parts(&self, at: &Range<usize>) -> Vec<Range<usize>> {
        self.parts_without(&self.outside.lock(), at)
    }

    /// Returns the parts of a range of addresses that lie in segments and not in `outside`.
    fn parts_without(&self, outside: &Ranges, at: &Range<usize>) -> Vec<Range<usize>> {
        let far =
            |segment| outside.missing(&bytes(&segment)).iter().map(|it| offsets(&it)).collect::<Vec<_>>();
        self.segments.within(at, self.page).flat_map(far).collect()
    }

    /// Excludes pages from far memory from now on, because the program mapped something else at their addresses.
    pub(crate) fn leave_out(&self, pages: &Range<PageNumber>) {
        let at = self.address(pages.start);
        let mut outside = self.outside.lock();
        outside.add(bytes(&(at..at + pages.len() * self.page)));
    }

    /// Returns the broker, whose threads can use the userfaultfd descriptor.
    #[must_use]
    pub const fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Returns the userfaultfd descriptor by which faults are received.
    #[must_use]
    pub fn faults(&self) -> &Userfault {
        // SAFETY: the pointer is that of a box that `new` or `renew` made. Only `renew` and `drop` free one: the caller
        // of `renew` promises that no reference from here is in use, and `drop` has exclusive access to `self`.
        unsafe { &*self.faults.load(Ordering::Acquire) }
    }

    /// Returns whether pages to which a device writes stay resident without being pinned (Linux 6.8 and later). If not,
    /// a device must not write to far memory.
    #[must_use]
    pub const fn knows_pinned(&self) -> bool {
        self.staging.moves()
    }

    /// Returns whether pages stay resident while the kernel writes to them through references, as `process_vm_writev`
    /// does in any process.
    #[must_use]
    pub const fn sees_references(&self) -> bool {
        self.staging.sees_references()
    }

    /// Notes that pages are about to be passed to the kernel for longer than one call: to a pipe or a socket, without a
    /// copy. The kernel then refers to their frames, and does not tell for how long. Therefore frames of evicted pages
    /// are not used again from now on.
    pub fn lend(&self) {
        // Relaxed: as in `is_lent`.
        if !self.lent.swap(true, Ordering::Relaxed) {
            self.staging.keep(0);
        }
    }

    /// Returns a fault that no thread serves yet, without waiting; `None` if there is none. The caller has served the
    /// fault that it got before: if another thread asked for that one, that thread may continue now.
    pub(crate) fn next_fault(&self) -> Option<Touch> {
        if self.faults().by_signal() {
            return self.fault_queue.next();
        }
        // The request that was returned before has been served. If the answer fails, its page is asked for again.
        let _ = self.doorbell.answer(self.faults());
        let mut faults = [PageFault { address: 0, write: false, protected: false, thread: 0 }];
        if self.faults().read(&mut faults) == 0 {
            return None;
        }
        let [fault] = faults;
        self.on_cpu.met_by(fault.thread);
        if let Some(asked) = self.doorbell.request(fault.address) {
            return Some(asked);
        }
        let page = self.page_at(fault.address)?;
        Some(Touch { page, write: fault.write || fault.protected })
    }

    /// Sleeps until there is a fault, or for [`IDLE_SLEEP`].
    pub(crate) fn wait_for_fault(&self) {
        self.wait_for_fault_at_most(IDLE_SLEEP);
    }

    /// Sleeps until there is a fault, or for at most the given number of milliseconds.
    pub(crate) fn wait_for_fault_at_most(&self, milliseconds: u16) {
        if self.faults().by_signal() {
            self.fault_queue.wait(Duration::from_millis(milliseconds.into()));
        } else {
            let _ = self.faults().wait(milliseconds);
        }
    }

    /// Sleeps until there is a fault or a transfer of `queue` has ended, for at most a tenth of a second. Returns
    /// `false` at once if it cannot sleep for both, as when faults are signals, which have no descriptor.
    pub(crate) fn wait_for_fault_or(&self, queue: &dyn TransferQueue) -> bool {
        const MOST: u16 = 100;
        match queue.descriptor() {
            Some(descriptor) if !self.faults().by_signal() => {
                let _ = self.faults().wait_or(descriptor, MOST);
                true
            }
            _ => false,
        }
    }

    /// Returns the far page at an address; `None` if the address is in no segment.
    #[must_use]
    pub fn page_at(&self, address: usize) -> Option<PageNumber> {
        self.segments.page_at(address, self.page)
    }

    /// Returns whether any of these addresses may be far. Takes no lock and allocates nothing.
    #[must_use]
    pub fn touches(&self, at: &Range<usize>) -> bool {
        self.segments.touches(at, self.page)
    }

    /// Returns the far parts of the addresses `at`.
    #[must_use]
    pub fn far_in(&self, at: &Range<usize>) -> Ranges {
        let mut far = Ranges::new();
        self.parts(at).iter().for_each(|part| far.add(bytes(part)));
        far
    }

    /// Prepares the eviction of pages from which the program may run code, before it has any. Without this they are
    /// evicted one by one, and what a device writes to one of them at that moment is lost.
    pub fn expect_executable(&self) -> Result<(), FaultError> {
        if !self.staging.lacks_executable() {
            return Ok(());
        }
        self.broker.call(|| self.staging.map_executable(self.faults()))
    }

    fn is_lent(&self) -> bool {
        // Relaxed: pages that were lent get here by way of the pager's lock and the lock of a staging buffer.
        self.lent.load(Ordering::Relaxed)
    }

    /// Returns frames of evicted pages for a fill of `len` bytes; `None` if there are not enough, or none may be used
    /// again.
    fn frames(&self, len: usize) -> Option<Frames<'_>> {
        let frames = self.reuses(len / self.page).then(|| self.staging.frames(len))?;
        // Checked again, since these may be frames of pages that were lent and evicted since the first check.
        frames.filter(|_| !self.is_lent())
    }

    pub(crate) fn address(&self, page: PageNumber) -> usize {
        self.segments.address(page, self.page)
    }
}

impl Drop for Linux {
    fn drop(&mut self) {
        // SAFETY: the pointer is that of a box, which is dropped once.
        let faults = unsafe { Box::from_raw(*self.faults.get_mut()) };
        let parts = self.parts(&(0..usize::MAX));
        self.broker.call(|| {
            // The descriptor outlives this value (`outlive_threads`), and with it the registration.
            parts.iter().for_each(|part| _ = faults.unregister(part.start, part.len()));
            self.staging.descriptors().for_each(drop);
            drop(faults);
        });
    }
}

fn inherited(at: usize, len: usize, yes: bool) -> Result<(), FaultError> {
    let at = core::ptr::with_exposed_provenance_mut(at);
    Ok(largesse_pages::inherited(at, len, yes)?)
}

impl Kernel for Linux {
    fn page(&self) -> usize {
        self.page
    }

    fn fill(&self, first: PageNumber, bytes: &[u8], protect: bool) -> Result<(), FaultError> {
        let to = self.address(first);
        if !protect && let Some(mut frames) = self.frames(bytes.len()) {
            frames.bytes().copy_from_slice(bytes);
            return frames.put(self.faults(), |put| put((0, to, bytes.len())));
        }
        self.faults().fill(to, bytes, protect)
    }

    fn keep(&self, pages: usize) {
        self.staging.keep(if self.reuses(usize::MAX) { pages } else { 0 });
    }

    fn reuses(&self, pages: usize) -> bool {
        let may = self.staging.moves() && self.faults().by_signal() && !self.is_lent();
        may && pages >= LEAST_REUSED
    }

    fn page_in(&self, order: &FillOrder, spare: &mut [u8], fetch: Fetch<'_>) -> Result<(), PagerError> {
        let (first, page) = (order.range().start, self.page);
        if let Some(mut frames) = self.frames(spare.len()) {
            fetch(frames.bytes())?;
            let part =
                |it: &Range<PageNumber>| ((it.start - first) * page, self.address(it.start), it.len() * page);
            return Ok(
                frames.put(self.faults(), |put| order.each(|it| put(part(it)), |woken| self.wake(woken)))?
            );
        }
        copied(self, order, spare, fetch)
    }

    fn protect(&self, pages: Range<PageNumber>, on: bool) -> Result<(), FaultError> {
        self.faults().protect(self.address(pages.start), pages.len() * self.page, on)
    }

    fn take(&self, pages: Range<PageNumber>, show: Show<'_>) -> Result<(), PagerError> {
        let shown = &mut |offset: usize, bytes: &[u8]| show(pages.start + offset / self.page, bytes);
        self.staging.take(self.faults(), self.address(pages.start), pages.len() * self.page, shown)
    }

    fn forget(&self, pages: &[Range<PageNumber>]) -> Result<(), FaultError> {
        let bytes = |it: &Range<PageNumber>| (self.address(it.start), it.len() * self.page);
        let parts: Vec<_> = pages.iter().map(bytes).collect();
        // SAFETY: the pages are far memory in a state in which no thread of the pager reads them; a touch by the
        // program is a fault that waits.
        Ok(unsafe { largesse_pages::forget_all(&parts) }?)
    }

    fn zeros(&self, pages: Range<PageNumber>) -> Vec<bool> {
        let mut bytes = [0; LOOK];
        let mut zero = vec![false; pages.len()];
        let at_once = (LOOK / self.page).max(1);
        for (first, zero) in pages.step_by(at_once).zip(zero.chunks_mut(at_once)) {
            let (at, bytes) = (self.address(first), &mut bytes[..zero.len() * self.page]);
            // A page that the program gave back by a system call of its own would fault here, in the thread that serves
            // faults.
            if are_resident(at, bytes.len()) && read_guarded(at, bytes) {
                zero.iter_mut()
                    .zip(bytes.chunks_exact(self.page))
                    .for_each(|(zero, bytes)| *zero = is_zero(bytes));
            }
        }
        zero
    }

    fn serve_on_cpu(&self, wanted: bool) {
        self.on_cpu.want(wanted);
    }

    fn wake(&self, pages: Range<PageNumber>) {
        // If faults are signals, no thread waits in the kernel. A range that is no longer registered has no waiting
        // threads either.
        if !pages.is_empty() && !self.faults().by_signal() {
            let _ = self.faults().wake(self.address(pages.start), pages.len() * self.page);
        }
    }
}
