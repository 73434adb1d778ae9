//! The in-thread engine: the faulting thread pages in by itself, in its handler of SIGBUS.

use super::signals;
use crate::errno::Errno;
use crate::far::{self, give_up};
use crate::serve;
use core::ffi::{c_int, c_void};
use largesse_pager::Touch;
use libc::{siginfo_t, ucontext_t};

/// What the handler needs of a stack for signals that the program made; elsewhere there is more.
const STACK: usize = 8 << 10;
/// The processor's flag for a write, in the error code of a fault.
const WRITE: i64 = 2;

/// From now on far pages come in the thread that meets them. The error is the kernel's `errno`.
pub(super) fn install() -> Result<(), c_int> {
    signals::take(libc::SIGBUS, fault)
}

/// The handler of `SIGBUS`. All signals are blocked meanwhile, and what is called here never touches
/// far memory. Of the program it changes nothing, not even `errno`.
unsafe extern "C" fn fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::save();
    // SAFETY: the kernel hands both to every handler that asks for them.
    let (info_of, context_of) = unsafe { (&*info, &*context.cast::<ucontext_t>()) };
    let far = serve::far().filter(|_| info_of.si_code > 0);
    // SAFETY: any bits of this union are an address. The signal is passed on if that is no far page, also when a process sent it.
    let address = unsafe { info_of.si_addr() }.addr();
    let page = far.and_then(|far| Some((far, far.pager().kernel().page_at(address)?)));
    let Some((far, page)) = page else {
        // SAFETY: what a handler got, and last.
        return unsafe { signals::pass_on(signal, info, context) };
    };
    let (here, stack) = ((&raw const errno).addr(), context_of.uc_stack);
    if here.wrapping_sub(stack.ss_sp.addr()) < stack.ss_size.min(STACK) {
        give_up("a handler of the program met it on a stack for signals (sigaltstack) that is too small");
    }
    let write = context_of.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0;
    match far.pager().resolve(Touch { page, write }, far::stores_everywhere()) {
        Ok(true) => {}
        // The program mapped something else there, perhaps a moment ago: where that cannot be touched the signal is its own.
        Ok(false) if is_touchable(address) => {}
        // SAFETY: what a handler got, and last.
        Ok(false) => return unsafe { signals::pass_on(signal, info, context) },
        Err(trouble) => give_up(&trouble.to_string()),
    }
    errno.put();
}

/// Whether the kernel has a page for a touch of this address (Linux 5.14; `false` before).
fn is_touchable(address: usize) -> bool {
    let page = largesse_pages::base_page();
    let at = core::ptr::with_exposed_provenance_mut(address / page * page);
    // SAFETY: this advice changes nothing that the page holds.
    unsafe { largesse_pages::raw_madvise(at, page, libc::MADV_POPULATE_READ) == 0 }
}
