//! System calls from code of our own, which the filter lets pass, and what a trapped one looks like.

use core::ffi::c_int;
use core::ops::Range;
pub(super) use largesse_pages::raw_call as call;
use libc::{c_long, siginfo_t, ucontext_t};

/// `SYS_SECCOMP`: the filter sent the signal.
const BY_FILTER: c_int = 1;

/// Replaces the signals that this thread has blocked.
pub(super) fn block(signals: u64) {
    let set = (&raw const signals).addr();
    // SAFETY: a set of signals that lives until the call ends; nothing is asked back.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, set, 0, size_of::<u64>(), 0, 0]) };
}

/// A system call that was sent to our handler instead.
#[derive(Debug)]
pub(super) struct Trapped<'a> {
    context: &'a mut ucontext_t,
    mark: c_int,
}

impl<'a> Trapped<'a> {
    /// `None`: somebody sent the signal.
    ///
    /// # Safety
    /// What a handler of `SIGSYS` got.
    pub(super) unsafe fn new(info: *const siginfo_t, context: *mut ucontext_t) -> Option<Trapped<'a>> {
        // SAFETY: the kernel hands both to every handler that asks for them.
        let (info, context) = unsafe { (&*info, &mut *context) };
        (info.si_code == BY_FILTER).then_some(Trapped { context, mark: info.si_errno })
    }

    fn register(&self, which: c_int) -> usize {
        self.context.uc_mcontext.gregs[which as usize] as usize
    }

    /// The mark of the filter that sent the signal.
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

    /// The stack for signals that the program gave the thread, as far as it is resident for good (`serve::signal_stack`).
    pub(super) fn signal_stack(&self) -> Range<usize> {
        used_of_stack(self.context.uc_stack.ss_sp.addr(), self.context.uc_stack.ss_size)
    }

    /// What the call returns.
    pub(super) fn answer(&mut self, answer: isize) {
        self.context.uc_mcontext.gregs[libc::REG_RAX as usize] = answer as i64;
    }

    /// The signals that the thread had blocked, and will have again.
    pub(super) fn blocked(&mut self) -> &mut u64 {
        blocked(self.context)
    }
}

/// The part of a stack for signals that is used, its end. The kernel takes any address and any length for one.
pub(super) fn used_of_stack(at: usize, len: usize) -> Range<usize> {
    const LONGEST: usize = 16 << 20;
    at.checked_add(len).map_or(0..0, |end| end - len.min(LONGEST)..end)
}

/// The kernel's set of blocked signals in what a handler gets.
pub(super) fn blocked(context: &mut ucontext_t) -> &mut u64 {
    // SAFETY: the kernel's set is the first eight bytes of the C library's, which is aligned for them.
    unsafe { &mut *(&raw mut context.uc_sigmask).cast::<u64>() }
}
