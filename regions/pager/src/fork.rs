//! Far memory across `fork`: a fork is a snapshot.
//!
//! The kernel gives a child neither the registration of far ranges nor the protection of pages: missing pages would
//! read as zeros there, and writes to clean pages would not be reported. So the pager is brought to rest before the
//! fork, and the child sets up its own before its program goes on.
//!
//! ```text
//!   hold:   doorbell held (no thread asks) ─► gate closed (no thread serves, no page in flight) ─► faults locked
//!           ─► state locked ─► store.fork(Before) ─► broker idle ─► outside locked ─► ranges are inherited
//!   parent: ranges are not inherited ─► outside unlocked ─► broker ─► store.fork(InParent)
//!           ─► state and faults unlocked ─► gate open
//!   child:  own broker ─► store.fork(InChild) ─► own descriptor, ranges registered
//!           ─► clean pages protected ─► state and faults unlocked ─► gate open ─► own threads (`start`)
//! ```
//! Ranges are inherited for that moment only: a child of a raw `clone` or of `_Fork` has no memory at their addresses,
//! and is ended by a signal when it touches them.
//!
//! The thread that forks takes every lock of the pager that another thread could hold at the fork: the child has no
//! other thread that would release it. The other locks are taken inside the gate or with the doorbell only, or held by
//! the caller (`MAPPINGS`). The forking thread is the only thread in the child, and releases the locks in both
//! processes.

use crate::fault_queue::FaultsGuard;
use crate::gate::Closed;
use crate::kernel::OutsideGuard;
use crate::lock::{DOORBELL, RankedGuard};
use crate::page::{PageState, runs};
use crate::pager::Pager;
use crate::state::{PagerState, StateGuard};
use crate::{Kernel as _, Linux, PagerError};
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::HeldBroker;
use largesse_store::{Fork, PageStore, StoreError};

/// A pager at rest for a fork: no page is in flight, and faults wait.
#[derive(Debug)]
pub struct HeldPager<'a, S> {
    pager: &'a Pager<Linux, S>,
    store: Result<(), StoreError>,
    ranges: Result<(), FaultError>,
    // Dropped in this order.
    outside: OutsideGuard<'a>,
    broker: HeldBroker<'a>,
    inner: StateGuard<'a>,
    faults: FaultsGuard<'a>,
    closed: Closed<'a>,
    doorbell: RankedGuard<'a, (), DOORBELL>,
}

impl<S: PageStore> Pager<Linux, S> {
    /// Brings the pager to rest, for a fork. Until the result is consumed, the caller lets no thread call
    /// [`enter`](Pager::enter) or [`drop_contents`](Pager::drop_contents).
    pub fn hold(&self) -> HeldPager<'_, S> {
        let (closed, doorbell) = self.rest();
        // After the gate is closed: threads inside of it take this lock.
        let faults = self.kernel.fault_queue.hold();
        let inner = self.lock();
        let bytes = (self.bounds.pages() * self.kernel.page()) as u64;
        let store = self.store.fork(Fork::Before { bytes });
        let broker = self.kernel.broker().hold();
        let outside = self.kernel.hold_outside();
        let ranges = self.kernel.let_inherit(&outside, true);
        HeldPager { pager: self, store, ranges, outside, broker, inner, faults, closed, doorbell }
    }

    /// Lets no thread serve faults, evict, or ask for a page until the result is dropped: no page is in flight.
    pub(crate) fn rest(&self) -> (Closed<'_>, RankedGuard<'_, (), DOORBELL>) {
        // First, since a thread that uses the doorbell waits for one that enters the gate.
        let doorbell = self.kernel.doorbell.hold();
        let closed = self.kernel.gate.close(|| {
            // Under the lock: the evicting thread either has seen that the gate closes, or sleeps.
            let _inner = self.lock();
            self.reclaim_needed.notify_all();
        });
        (closed, doorbell)
    }

    /// Returns the `Clean` pages as runs of consecutive pages; `None` if a page is in flight after all.
    fn clean(&self, inner: &mut PagerState) -> Option<Vec<Range<PageNumber>>> {
        // Resident pages are in the replacement queue, or wait for their check: the page table may be very long.
        let mut queued: Vec<_> = inner.speculative.pages().collect();
        inner.queue.retain(&mut |run| {
            queued.push(run.range());
            true
        });
        queued.sort_unstable_by_key(|run| run.start);
        queued.dedup_by(|after, before| {
            let joins = after.start <= before.end;
            if joins {
                before.end = before.end.max(after.end);
            }
            joins
        });
        let here = |range: &Range<PageNumber>| {
            range.clone().filter(|&page| inner.pages[page].state.is_resident()).count()
        };
        if queued.iter().map(here).sum::<usize>() != inner.pages.resident() {
            queued.clear();
            queued.push(0..self.bounds.pages());
        }
        if queued.iter().any(|run| run.clone().any(|page| inner.pages[page].state.in_flight())) {
            return None;
        }
        // Pages with consecutive numbers in two segments are not neighbours.
        let segment = |page: PageNumber| {
            (inner.pages[page].state == PageState::Clean).then(|| self.bounds.around(page).start)
        };
        Some(queued.into_iter().flat_map(|run| runs(run, segment)).map(|(run, _)| run).collect())
    }
}

impl<S: PageStore> HeldPager<'_, S> {
    /// Lets the parent continue, after the fork or its failure.
    pub fn in_parent(self) {
        let HeldPager { pager, store, outside, broker, inner, faults, closed, doorbell, .. } = self;
        // If the kernel refuses, children that are made without the pager read zeros.
        let _ = pager.kernel.let_inherit(&outside, false);
        drop((outside, broker));
        if store.is_ok() {
            let _ = pager.store.fork(Fork::InParent);
        }
        drop((inner, faults, closed, doorbell));
    }

    /// Sets up far memory in the child. After `Ok`, the caller starts the threads that serve faults before it touches
    /// far memory. After an error, far memory must never be touched again.
    ///
    /// # Safety
    /// This is the child's only thread.
    pub unsafe fn in_child(self) -> Result<(), PagerError> {
        let HeldPager { pager, store, ranges, outside, broker, inner, faults, closed, doorbell } = self;
        // The child has one thread. `renew` takes the staging buffers' locks, which come before these.
        drop((outside, broker, inner));
        store?;
        ranges?;
        pager.kernel.broker().start_thread().map_err(|error| PagerError::System {
            call: "pthread_create",
            errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
        })?;
        pager.store.fork(Fork::InChild)?;
        // SAFETY: the caller's thread was the only one, and the broker's, started above, runs only what this thread
        // asks for. This function has no reference to the descriptor.
        unsafe { pager.kernel.renew()? };
        let mut inner = pager.lock();
        inner.pins.forget_held();
        let clean = pager.clean(&mut inner).ok_or(PagerError::Kernel(FaultError(libc::EBUSY)))?;
        let protect = || clean.into_iter().try_for_each(|run| pager.kernel.protect(run, true));
        pager.kernel.broker().call(protect)?;
        drop((inner, faults, closed, doorbell));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start;
    use crate::test_pager::over_one_span;
    use core::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    /// A child can never take a lock that another thread of the parent held at the fork.
    #[test]
    fn locks_outside_of_the_gate_are_held() {
        let Some((pager, _)) = over_one_span() else { return };
        let is_free = || {
            let faults = pager.kernel.fault_queue.try_hold().is_some();
            (faults, pager.kernel.try_hold_outside().is_some())
        };
        assert_eq!(is_free(), (true, true));
        let held = pager.hold();
        assert_eq!(is_free(), (false, false));
        held.in_parent();
        assert_eq!(is_free(), (true, true));
    }

    fn end_child(_: &PagerError) -> ! {
        // SAFETY: no preconditions.
        unsafe { libc::_exit(3) }
    }

    /// Returns the status with which a child ends, or `None` if it must be killed after 20 s.
    fn status_of(child: libc::pid_t) -> Option<i32> {
        let (since, mut status) = (Instant::now(), 0);
        // SAFETY: a child of this process, and room for its status.
        while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } != child {
            if since.elapsed() > Duration::from_secs(20) {
                // SAFETY: a child of this process, which was not waited for yet.
                unsafe { libc::kill(child, libc::SIGKILL) };
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(status)
    }

    #[test]
    fn child_uses_its_pages_whatever_other_threads_did() {
        let Some((pager, at)) = over_one_span() else { return };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(pager.kernel.far_in(&(at..at + 1)));
                }
            });
            let mut ended = (0..32).map(|_| {
                let held = pager.hold();
                // SAFETY: the child makes no use of what other threads of this process have locked.
                let child = unsafe { libc::fork() };
                if child != 0 {
                    held.in_parent();
                    return status_of(child);
                }
                // SAFETY: the child has one thread.
                let set_up = unsafe { held.in_child() }.is_ok() && start(&pager, end_child).is_ok();
                let word = core::ptr::with_exposed_provenance::<u64>(at);
                // SAFETY: a page of far memory, whose faults are served; the call has no preconditions.
                unsafe { libc::_exit(if set_up && word.read_volatile() == 0 { 0 } else { 1 }) }
            });
            let wrong = ended.find(|status| *status != Some(0));
            stop.store(true, Ordering::Relaxed);
            assert_eq!(wrong, None, "status of a child, or `None` within: it had to be killed");
        });
    }
}
