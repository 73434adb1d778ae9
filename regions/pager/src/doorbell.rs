//! The doorbell: asks the handler thread for a page, without a touch of that page.
//!
//! The pages of a system call may have any protection, and addresses that a program passes to one may be wrong: to
//! touch them could end the program where the kernel answers `EFAULT`. The thread that makes the call may not use the
//! userfaultfd descriptor either (`largesse_store::Broker`). So it touches a page of ours that is registered with the
//! descriptor and always missing. The serving thread reads that fault like any other, takes the request, and fills the
//! page when it has served it.

use crate::lock::{DOORBELL, REQUEST, RankedGuard, RankedMutex};
use crate::page::Touch;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_pages::fault::{FaultError, Userfault};
use largesse_pages::{MapError, PageKind, Reserved, SPAN, Table, base_page};

/// The page that is touched, and the request.
#[derive(Debug)]
pub(crate) struct Doorbell {
    page: Reserved,
    /// The bytes that fill it.
    zeros: Table<u8>,
    /// Held by the asking thread until it is answered.
    turn: RankedMutex<(), DOORBELL>,
    /// The request of the thread that has its turn; `None` once it was taken.
    request: RankedMutex<Option<Touch>, REQUEST>,
    /// A request was taken and is not answered yet.
    taken: AtomicBool,
}

impl Doorbell {
    pub(crate) fn new() -> Result<Doorbell, FaultError> {
        let refused = |error: MapError| FaultError(error.errno);
        let page = Reserved::new(SPAN, SPAN).map_err(refused)?;
        page.commit(0, base_page(), PageKind::Small).map_err(refused)?;
        let zeros = Table::new(base_page()).ok_or(FaultError(libc::ENOMEM))?;
        Ok(Doorbell {
            page,
            zeros,
            turn: RankedMutex::default(),
            request: RankedMutex::default(),
            taken: AtomicBool::new(false),
        })
    }

    fn address(&self) -> usize {
        self.page.start().as_ptr().addr()
    }

    /// Faults at its page are told by `faults` from now on.
    pub(crate) fn register(&self, faults: &Userfault) -> Result<(), FaultError> {
        faults.register(self.address(), base_page())
    }

    /// Has a fault served by a serving thread. It may return a moment before the page is resident.
    pub(crate) fn ask(&self, touch: Touch) {
        let _turn = self.hold();
        *self.request.lock() = Some(touch);
        // SAFETY: the page is ours, committed for good and read by its holder of the turn alone; the fault is served.
        unsafe { self.page.start().as_ptr().read_volatile() };
        // SAFETY: only the holder of the turn reads the page, and never uses its contents. A fill that is late leaves
        // it resident: the next fault is then not asked for, and the caller tries its own page again.
        let _ = unsafe { self.page.purge(0, base_page()) };
    }

    /// Waits until no thread asks, and lets none ask: for a fork.
    pub(crate) fn hold(&self) -> RankedGuard<'_, (), DOORBELL> {
        self.turn.lock()
    }

    /// The request that waits, if `fault` is at the page.
    pub(crate) fn request(&self, fault: usize) -> Option<Touch> {
        if fault.wrapping_sub(self.address()) >= base_page() {
            return None;
        }
        let touch = self.request.lock().take()?;
        self.taken.store(true, Ordering::Relaxed); // Relaxed: a second serving thread may answer early, see `ask`
        Some(touch)
    }

    /// Lets the asking thread go on, if its request was taken.
    pub(crate) fn answer(&self, faults: &Userfault) -> Result<(), FaultError> {
        // Relaxed: as above.
        if self.taken.load(Ordering::Relaxed) && self.taken.swap(false, Ordering::Relaxed) {
            faults.fill(self.address(), &self.zeros, false)?;
            faults.wake(self.address(), base_page())?;
        }
        Ok(())
    }
}
