//! Faults that the kernel reports by a signal to the faulting thread (SIGBUS).
//!
//! ```text
//!   faulting thread ──SIGBUS──► resolve ──the store works in every thread──► Pager::serve, in the faulting thread
//!                                  └──it needs the descriptors of our threads──► FaultQueue ──► handler thread
//! ```
//! If the faulting thread serves its fault itself, no other thread has to be woken: that would cost more than the
//! fault.

use crate::PagerError;
use crate::kernel::Linux;
use crate::page::{PageState, Touch};
use crate::pager::Pager;
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

impl<S: PageStore> Pager<Linux, S> {
    /// Has a fault of the calling thread served: in this thread if `here` and the kernel reports faults by signals,
    /// otherwise in the handler thread. When it returns, the calling thread may touch the page again. Returns `false`
    /// if the page is no longer far memory, so that the fault is not the pager's. The caller blocks signals.
    pub fn resolve(&self, touch: Touch, here: bool) -> Result<bool, PagerError> {
        let fault_queue = &self.kernel().fault_queue;
        if !self.kernel().faults().by_signal() {
            self.kernel().doorbell.ask(touch);
        } else if here {
            // Pages are in flight only inside the gate: a fork waits for that.
            let _inside = self.kernel().gate.enter();
            let no_memory = PagerError::System { call: "mmap", errno: libc::ENOMEM };
            let mut buffer = fault_queue.buffer().ok_or(no_memory)?;
            self.serve(touch, &mut buffer)?;
            fault_queue.give_back(buffer);
        } else {
            fault_queue.ask(touch);
        }
        let mut inner = self.lock();
        while inner.must_wait_for(touch.page) {
            inner = self.io_done.wait(inner);
        }
        Ok(inner.pages[touch.page].state != PageState::Outside)
    }

    /// Makes pinned pages resident, and writable if `write` is true, without touching them: the program may have
    /// protected them, so that a touch would raise a signal. The calling thread serves the faults itself if `here`,
    /// otherwise the handler thread does. The caller blocks signals.
    pub fn page_in(&self, pinned: &Range<PageNumber>, write: bool, here: bool) -> Result<(), PagerError> {
        let mut inner = self.lock();
        for page in pinned.clone() {
            loop {
                match inner.pages[page].state {
                    PageState::Dirty | PageState::Outside => break,
                    _ if inner.near.contains(&page) => break,
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
