//! Faults that come as a signal to the thread that meets them.
//!
//! ```text
//!   thread ──SIGBUS──► resolve ──the store works in every thread──► Pager::serve, here
//!                         └──it needs the descriptors of our threads──► FaultQueue ──► the thread that fills
//! ```
//! Here means no other thread is woken, which costs more than the fault itself.

use crate::PagerError;
use crate::kernel::Linux;
use crate::page::PageState;
use crate::pager::{Buffer, Pager, Touch};
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_store::PageStore;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Faults for the thread that fills.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    faults: Mutex<Faults>,
    /// Somebody asks.
    asked: Condvar,
    /// Some were served.
    served: Condvar,
    /// For threads that serve faults on the processor of who waits.
    buffers: Mutex<Vec<Buffer>>,
}

#[derive(Debug, Default)]
struct Faults {
    waiting: VecDeque<Touch>,
    /// So many have come, and so many were served, in their order.
    come: u64,
    served: u64,
}

impl FaultQueue {
    /// The next fault; what was handed out before has been served.
    pub(crate) fn next(&self) -> Option<Touch> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let served = faults.come - faults.waiting.len() as u64;
        if faults.served != served {
            faults.served = served;
            self.served.notify_all();
        }
        faults.waiting.pop_front()
    }

    /// Sleeps until there is one, at most so long.
    pub(crate) fn wait(&self, most: Duration) {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.waiting.is_empty() {
            drop(self.asked.wait_timeout(faults, most));
        }
    }

    /// Has a fault served by the thread that fills.
    fn ask(&self, touch: Touch) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.waiting.push_back(touch);
        faults.come += 1;
        let own = faults.come;
        self.asked.notify_one();
        while faults.served < own {
            faults = self.served.wait(faults).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn buffer(&self) -> Option<Buffer> {
        let free = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.or_else(|| Buffer::on_cpu(MAX_TRANSFER))
    }

    pub(crate) fn give_back(&self, buffer: Buffer) {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

impl<S: PageStore> Pager<Linux, S> {
    /// Serves a fault of the calling thread, in it (`here`) or in the thread that fills. When it
    /// returns, the thread may try again. `false`: the page is not far memory any more, and the fault is none of ours. The
    /// caller lets no signal come in between.
    pub fn resolve(&self, touch: Touch, here: bool) -> Result<bool, PagerError> {
        let fault_queue = &self.kernel().fault_queue;
        if !self.kernel().faults().by_signal() {
            self.kernel().doorbell.ask(touch);
        } else if here {
            // Whatever puts pages in flight happens inside: a fork waits for it.
            let _inside = self.kernel().gate.enter();
            let mut buffer = fault_queue.buffer().ok_or(FaultError(libc::ENOMEM))?;
            self.serve(touch, &mut buffer)?;
            fault_queue.give_back(buffer);
        } else {
            fault_queue.ask(touch);
        }
        let mut inner = self.lock();
        while inner.pages[touch.page].state.in_flight() {
            inner = self.io_done.wait(inner);
        }
        Ok(inner.pages[touch.page].state != PageState::Outside)
    }

    /// Makes pinned pages resident, and lets them be written to if asked, without touching them: the program
    /// may have protected them, and a touch would be a signal. `here` is as for [`resolve`](Pager::resolve); the caller lets no
    /// signal come in between.
    pub fn page_in(&self, pinned: &Range<PageNumber>, write: bool, here: bool) -> Result<(), PagerError> {
        let mut inner = self.lock();
        for page in pinned.clone() {
            loop {
                match inner.pages[page].state {
                    PageState::Dirty | PageState::Outside => break,
                    PageState::Clean if !write => break,
                    PageState::Filling | PageState::Leaving => inner = self.io_done.wait(inner),
                    PageState::Clean | PageState::Zero | PageState::SwappedOut => {
                        drop(inner);
                        self.resolve(Touch { page, write }, here)?;
                        inner = self.lock();
                    }
                }
            }
        }
        Ok(())
    }
}
