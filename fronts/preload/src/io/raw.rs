//! Makes system calls from code that the filter allows, and decodes trapped ones.

use crate::in_progress;
use crate::own_stacks::{self, OwnStacks};
use crate::signals::bit;
use core::ffi::c_int;
use core::ops::Range;
pub(super) use largesse_pages::raw_call as call;
use libc::{c_long, siginfo_t, ucontext_t};

/// `SYS_SECCOMP`, the `si_code` of a signal that a filter raised.
const BY_FILTER: c_int = 1;

/// The signals that are blocked while our handlers run: a handler of the program may use far memory, and so wait for a
/// lock of this very thread. `SIGSEGV` is not blocked, because the program may handle faults of pages that it has
/// protected.
pub(super) const HANDLER_MASK: u64 = !(bit(libc::SIGSYS) | bit(libc::SIGBUS) | bit(libc::SIGSEGV));

/// Replaces the set of signals that the calling thread blocks.
pub(super) fn block(signals: u64) {
    let set = (&raw const signals).addr();
    // SAFETY: the set lives until the call ends, and the kernel writes nothing.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, set, 0, size_of::<u64>(), 0, 0]) };
}

/// Makes a call while the signals in `blocked`, the program's own set, are blocked.
pub(super) fn make(number: c_long, arguments: [usize; 6], blocked: u64) -> isize {
    block(blocked);
    // SAFETY: the program made this very call, or one of which this is a part, on memory that the program passed to it
    // or that is ours. The kernel checks every address.
    let answer = unsafe { call(number, arguments) };
    block(HANDLER_MASK);
    answer
}

/// A trapped system call, as the handler of `SIGSYS` receives it.
#[derive(Debug)]
pub(super) struct Trapped<'a> {
    context: &'a mut ucontext_t,
    mark: c_int,
}

impl<'a> Trapped<'a> {
    /// Decodes the arguments of a handler; returns `None` if no filter raised the signal.
    ///
    /// # Safety
    /// The kernel passed both to a handler of `SIGSYS`, which still runs.
    pub(super) unsafe fn new(info: *const siginfo_t, context: *mut ucontext_t) -> Option<Trapped<'a>> {
        // SAFETY: the kernel hands both to every handler that asks for them.
        let (info, context) = unsafe { (&*info, &mut *context) };
        (info.si_code == BY_FILTER).then_some(Trapped { context, mark: info.si_errno })
    }

    fn register(&self, which: c_int) -> usize {
        self.context.uc_mcontext.gregs[which as usize] as usize
    }

    /// Returns the mark of the filter that raised the signal.
    pub(super) fn mark(&self) -> c_int {
        self.mark
    }

    pub(super) fn number(&self) -> c_long {
        self.register(libc::REG_RAX) as c_long
    }

    pub(super) fn arguments(&self) -> [usize; 6] {
        [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
            .map(|which| self.register(which))
    }

    /// Returns the stacks of the calling thread that are pinned for good (`serve::signal_stack`, `thread_stack.rs`), and
    /// where it made the call. Each result has another number.
    pub(super) fn own_stacks(&self) -> OwnStacks {
        let pointer = self.register(libc::REG_RSP);
        OwnStacks {
            signal: used_of_stack(self.context.uc_stack.ss_sp.addr(), self.context.uc_stack.ss_size),
            thread: own_stacks::around(pointer),
            pointer,
            frame: core::ptr::from_ref(&*self.context).addr(),
            call: in_progress::next_number(),
        }
    }

    /// Sets the call's return value.
    pub(super) fn answer(&mut self, answer: isize) {
        self.context.uc_mcontext.gregs[libc::REG_RAX as usize] = answer as i64;
    }

    /// Returns the set of signals that the thread blocks after the handler has returned.
    pub(super) fn blocked(&mut self) -> &mut u64 {
        blocked(self.context)
    }
}

/// Returns the last 16 MiB of a signal stack, or all of a shorter one; empty if its end overflows, since the kernel
/// accepts any address and length.
pub(super) fn used_of_stack(at: usize, len: usize) -> Range<usize> {
    const LONGEST: usize = 16 << 20;
    at.checked_add(len).map_or(0..0, |end| end - len.min(LONGEST)..end)
}

/// Returns the kernel's set of blocked signals in the context of a handler.
pub(super) fn blocked(context: &mut ucontext_t) -> &mut u64 {
    // SAFETY: the kernel's set is the first eight bytes of the C library's, which is aligned for them.
    unsafe { &mut *(&raw mut context.uc_sigmask).cast::<u64>() }
}
