//! Exports `pthread_attr_setstack`, by which a program gives a thread a stack in memory of its own.
//!
//! The filter of system calls raises `SIGSYS`, and the in-thread engine `SIGBUS`. The kernel writes the frame of such a
//! signal to the stack, and ends the program if that page is far. So a stack in far memory stays resident for good, as
//! a signal stack does, also beyond the bound of local memory.

use crate::guard::Inside;
use crate::late_filter;
use crate::own_stacks::{self, OwnStacks};
use crate::pinned::PinnedPages;
use crate::signals::{bit, kept_open};
use core::ffi::{c_int, c_void};

/// Implements `pthread_attr_setstack(3)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_attr_setstack(
    attributes: *mut libc::pthread_attr_t,
    stack: *mut c_void,
    bytes: usize,
) -> c_int {
    // SAFETY: the program made this very call.
    let answer = unsafe { crate::next::pthread_attr_setstack(attributes, stack, bytes) };
    // The filter must be there before the first thread, and this stack must be known to it.
    late_filter::before_thread();
    // Without the filter the kernel waits for far pages itself.
    if answer == 0 && kept_open() & bit(libc::SIGSYS) != 0 {
        let _inside = Inside::enter();
        let mut pages = PinnedPages::new(&OwnStacks::NONE);
        pages.all(stack.addr(), bytes, true);
        pages.forever();
        own_stacks::list(stack.addr()..stack.addr().saturating_add(bytes));
    }
    answer
}
