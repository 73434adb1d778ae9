//! Faults that come as a signal to the thread that meets them.
//!
//! ```text
//!   thread ──SIGBUS──► resolve ──the store works in every thread──► Pager::serve, here
//!                         └──it needs the descriptors of our threads──► FaultQueue ──► the thread that fills
//! ```
//! Here means no other thread is woken, which costs more than the fault itself.

use crate::PagerError;
use crate::kernel::Linux;
use crate::page::{PageState, Touch};
use crate::pager::Pager;
use core::ops::Range;
use largesse_pages::fault::FaultError;
use largesse_policy::PageNumber;
use largesse_store::PageStore;

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
