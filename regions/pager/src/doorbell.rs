//! The doorbell: asks the handler thread for a page, without a touch of that page.
//!
//! The pages of a system call may have any protection, and addresses that a program passes to one may be wrong: to
//! touch them could end the program where the kernel answers `EFAULT`. The thread that makes the call may not use the
//! userfaultfd descriptor either (`largesse_store::Broker`). So it touches a page of ours that is registered with the
//! descriptor and always missing. The handler thread receives the fault of our page like any other, takes the request
//! for the program's page, and fills our page after it has served the request.

use crate::lock::{DOORBELL, REQUEST, RankedGuard, RankedMutex};
use crate::page::Touch;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_pages::fault::{FaultError, Userfault};
use largesse_pages::{PageKind, Reserved, SPAN, Table, base_page};

/// Asks the handler thread for a page of the program: by a touch of a page that is always missing.
#[derive(Debug)]
pub(crate) struct Doorbell {
    page: Reserved,
    /// The zeros with which `page` is filled when a request was served.
    zeros: Table<u8>,
    /// Held by the asking thread until its request was served.
    turn: RankedMutex<(), DOORBELL>,
    /// The request of the thread that holds `turn`; `None` once the handler thread has taken it.
    request: RankedMutex<Option<Touch>, REQUEST>,
    /// Whether the handler thread has taken a request and not answered it yet.
    taken: AtomicBool,
}

impl Doorbell {
    pub(crate) fn new() -> Result<Doorbell, FaultError> {
        let page = Reserved::new(SPAN, SPAN)?;
        page.commit(0, base_page(), PageKind::Small)?;
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

    /// Registers the doorbell's page with `faults`, which reports its faults from now on.
    pub(crate) fn register(&self, faults: &Userfault) -> Result<(), FaultError> {
        faults.register(self.address(), base_page())
    }

    /// Has the fault `touch` served by the handler thread. It may return a moment before the page is resident.
    pub(crate) fn ask(&self, touch: Touch) {
        let _turn = self.hold();
        *self.request.lock() = Some(touch);
        // SAFETY: the page is ours, committed for good and read by its holder of the turn alone; the fault is served.
        unsafe { self.page.start().as_ptr().read_volatile() };
        // SAFETY: only the holder of the turn reads the page, and never uses its contents. A fill that is late leaves
        // it resident: the next fault is then not asked for, and the caller tries its own page again.
        let _ = unsafe { self.page.purge(0, base_page()) };
    }

    /// Waits until no thread asks, and lets none ask until the guard is dropped: for a fork.
    pub(crate) fn hold(&self) -> RankedGuard<'_, (), DOORBELL> {
        self.turn.lock()
    }

    /// Takes the waiting request, if the address `fault` is on the doorbell's page; otherwise returns `None`.
    pub(crate) fn request(&self, fault: usize) -> Option<Touch> {
        if fault.wrapping_sub(self.address()) >= base_page() {
            return None;
        }
        let touch = self.request.lock().take()?;
        self.taken.store(true, Ordering::Relaxed); // Relaxed: a second serving thread may answer early, see `ask`
        Some(touch)
    }

    /// Lets the asking thread continue, if its request was taken.
    pub(crate) fn answer(&self, faults: &Userfault) -> Result<(), FaultError> {
        // Relaxed: as above.
        if self.taken.load(Ordering::Relaxed) && self.taken.swap(false, Ordering::Relaxed) {
            faults.fill(self.address(), &self.zeros, false)?;
            faults.wake(self.address(), base_page())?;
        }
        Ok(())
    }
}
