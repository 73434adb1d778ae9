//! The in-thread engine, in which the faulting thread pages in by itself, in its handler of `SIGBUS`.

use super::signals;
use crate::errno::Errno;
use crate::heap;
use crate::lost::give_up;
use crate::near_calls;
use crate::near_mappings;
use crate::near_statics;
use crate::settings::store_is_everywhere;
use core::ffi::{c_int, c_void};
use largesse_pager::Touch;
use libc::{siginfo_t, ucontext_t};

/// Number of bytes that the handler needs of a signal stack that the program provides; other stacks are larger.
const STACK: usize = 8 << 10;
/// Bit in the processor's error code of a page fault that marks a write.
const WRITE: i64 = 2;

/// Installs the handler that pages in on the faulting thread. The error is the kernel's `errno`.
pub(super) fn install() -> Result<(), c_int> {
    signals::take(libc::SIGBUS, fault)
}

/// Handles `SIGBUS` with the signals of [`HANDLER_MASK`](super::raw::HANDLER_MASK) blocked. Its callees never touch far
/// memory. It changes no state of the program, not even `errno`.
unsafe extern "C" fn fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let errno = Errno::save();
    // SAFETY: the kernel hands both to every handler that asks for them.
    let (info_of, context_of) = unsafe { (&*info, &*context.cast::<ucontext_t>()) };
    let far = heap::far().filter(|_| info_of.si_code > 0);
    // A signal that a process sent, or whose address is no far page, is passed on.
    // SAFETY: any bits of this union are a valid address.
    let address = unsafe { info_of.si_addr() }.addr();
    let page = far.and_then(|far| Some((far, far.pager().kernel().page_at(address)?)));
    let Some((far, page)) = page else {
        if info_of.si_code > 0 && is_of_change_over(address) {
            return errno.put();
        }
        // SAFETY: these are this handler's arguments, and nothing follows.
        return unsafe { signals::pass_on(signal, info, context) };
    };
    let (here, stack) = ((&raw const errno).addr(), context_of.uc_stack);
    if here.wrapping_sub(stack.ss_sp.addr()) < stack.ss_size.min(STACK) {
        give_up(
            "a signal handler touched it with less than 8 KiB left on its stack (sigaltstack); enlarge that stack",
        );
    }
    let write = context_of.uc_mcontext.gregs[libc::REG_ERR as usize] & WRITE != 0;
    match far.pager().resolve(Touch { page, write }, store_is_everywhere()) {
        Ok(true) => {}
        // The program mapped other memory there after the fault; if that is inaccessible, the signal is the program's.
        Ok(false) if is_touchable(address) => {}
        // SAFETY: as above.
        Ok(false) => return unsafe { signals::pass_on(signal, info, context) },
        Err(error) => give_up(&error.to_string()),
    }
    errno.put();
}

/// Returns whether a fault was raised while blocks became far memory for the first time, so that the thread is to touch
/// the address again. Returns once the change-over is over.
fn is_of_change_over(address: usize) -> bool {
    let at = address..address + 1;
    let is_other = !near_mappings::inside(&at).is_empty() || !near_statics::inside(&at).is_empty();
    if !is_other && !heap::owns(core::ptr::without_provenance_mut(address)) {
        return false;
    }
    // The change-over holds this lock. If it was refused, the kernel serves the page again.
    drop(near_calls::lock());
    heap::far().is_some() || is_touchable(address)
}

/// Returns whether the kernel can populate the page at this address for reading (Linux 5.14; `false` before).
fn is_touchable(address: usize) -> bool {
    let page = largesse_pages::base_page();
    let at = core::ptr::with_exposed_provenance_mut(address / page * page);
    // SAFETY: this advice changes nothing that the page holds.
    unsafe { largesse_pages::raw_madvise(at, page, libc::MADV_POPULATE_READ) == 0 }
}
