//! Far memory across `fork`: a fork is a snapshot.
//!
//! The kernel gives a child neither the registration of the far range nor the protection of pages:
//! what is not here would read as zeros there, and writes to clean pages would not be told. So the
//! pager is brought to rest before, and the child makes its own before its program goes on.
//!
//! ```text
//!   hold: bell held (nobody asks) ─► gate closed (nobody serves, no page in flight) ─► states locked ─► store.fork(Before)
//!           ─► broker idle ─► ranges are inherited
//!   parent: ranges are not inherited ─► broker ─► store.fork(InParent) ─► states unlocked ─► gate open
//!   child:  own broker ─► store.fork(InChild) ─► own descriptor, ranges registered
//!           ─► clean pages protected ─► states unlocked ─► gate open ─► own threads (`start`)
//! ```
//! Ranges are inherited for that moment only: a child of a raw `clone` or of `_Fork` finds nothing at
//! their addresses, and ends by a signal when it touches them.
//!
//! Locks are taken by the thread that forks, which is the only one in the child: it gives them back on
//! either side.

use crate::gate::Closed;
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

/// A pager at rest: no page is in flight, and faults wait.
#[derive(Debug)]
pub struct HeldPager<'a, S> {
    pager: &'a Pager<Linux, S>,
    store: Result<(), StoreError>,
    ranges: Result<(), FaultError>,
    // Dropped in this order.
    broker: HeldBroker<'a>,
    inner: StateGuard<'a>,
    closed: Closed<'a>,
    doorbell: RankedGuard<'a, (), DOORBELL>,
}

impl<S: PageStore> Pager<Linux, S> {
    /// Brings everything to rest, for a fork. The caller sees to it that nobody calls
    /// [`enter`](Pager::enter) or [`drop_contents`](Pager::drop_contents) until the end.
    pub fn hold(&self) -> HeldPager<'_, S> {
        // First: whoever asks waits for a thread that passes the gate.
        let doorbell = self.kernel.doorbell.hold();
        let closed = self.kernel.gate.close(|| {
            // Under the lock: the evictor has either seen that the gate closes, or sleeps.
            let _inner = self.lock();
            self.reclaim_needed.notify_all();
        });
        let inner = self.lock();
        let bytes = (self.bounds.pages() * self.kernel.page()) as u64;
        let store = self.store.fork(Fork::Before { bytes });
        let broker = self.kernel.broker().hold();
        let ranges = self.kernel.let_inherit(true);
        HeldPager { pager: self, store, ranges, broker, inner, closed, doorbell }
    }

    /// The pages that are here and clean, in runs; `None` when one is in flight after all.
    fn clean(&self, inner: &mut PagerState) -> Option<Vec<Range<PageNumber>>> {
        // Resident pages are in the queue, or wait to be looked at: the table of all pages may be very long.
        let mut queued: Vec<_> = inner.speculative.pages().collect();
        inner.queue.retain(|run| {
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
        // Numbers that follow each other across two segments are not neighbours.
        let segment = |page: PageNumber| {
            (inner.pages[page].state == PageState::Clean).then(|| self.bounds.around(page).start)
        };
        Some(queued.into_iter().flat_map(|run| runs(run, segment)).map(|(run, _)| run).collect())
    }
}

impl<S: PageStore> HeldPager<'_, S> {
    /// After the fork, or its failure, in the parent: all goes on.
    pub fn in_parent(self) {
        let HeldPager { pager, store, broker, inner, closed, doorbell, .. } = self;
        // What was refused is inherited as before: zeros for whom we do not know of.
        let _ = pager.kernel.let_inherit(false);
        drop(broker);
        if store.is_ok() {
            let _ = pager.store.fork(Fork::InParent);
        }
        drop((inner, closed, doorbell));
    }

    /// In the child. When this is `Ok`, threads that serve faults must be started before far memory
    /// is touched; when not, it must never be touched again.
    ///
    /// # Safety
    /// This is the child's only thread.
    pub unsafe fn in_child(self) -> Result<(), PagerError> {
        let HeldPager { pager, store, ranges, broker, mut inner, closed, doorbell } = self;
        drop(broker);
        store?;
        ranges?;
        pager
            .kernel
            .broker()
            .start_thread()
            .map_err(|error| FaultError(error.raw_os_error().unwrap_or(0)))?;
        pager.store.fork(Fork::InChild)?;
        // SAFETY: the caller's promise.
        unsafe { pager.kernel.renew()? };
        inner.pins.forget_held();
        let clean = pager.clean(&mut inner).ok_or(PagerError::Kernel(FaultError(libc::EBUSY)))?;
        let protect = || clean.into_iter().try_for_each(|run| pager.kernel.protect(run, true));
        pager.kernel.broker().call(protect)?;
        drop((inner, closed, doorbell));
        Ok(())
    }
}
