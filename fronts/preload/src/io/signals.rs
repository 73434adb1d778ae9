//! The program's signals beside ours.
//!
//! Our handlers must get the signals that the kernel sends for far memory, whatever the program blocks
//! and whichever handler it installs: it would be killed otherwise. So the calls that say so come
//! here, also those that the C library makes on its own: the bits of our signals are left out of
//! every set, and the program's own actions for them are kept here.

use super::pinned::Stays;
use super::program;
use super::raw::{self, Trapped};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use libc::{siginfo_t, ucontext_t};
use std::sync::{Mutex, PoisonError};

/// The kernel's `struct sigaction`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    blocked: u64,
}

/// The bit of a signal in the kernel's sets.
const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Blocked while our handlers work: what the program does in a handler may need far memory, and wait
/// for what this very thread holds. A page of the program that it may not touch is its own affair.
pub(super) const MEANWHILE: u64 = !(bit(libc::SIGSYS) | bit(libc::SIGBUS) | bit(libc::SIGSEGV));

/// The signals that are ours.
static OURS: AtomicU64 = AtomicU64::new(0);
/// The process that the actions below are for; a child of `vfork` sees them, and has others.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// What the program wants done about `SIGSYS` and `SIGBUS`.
static WANTED: [Mutex<Action>; 2] =
    [const { Mutex::new(Action { handler: 0, flags: 0, restorer: 0, blocked: 0 }) }; 2];

fn wanted(signal: c_int) -> &'static Mutex<Action> {
    &WANTED[usize::from(signal == libc::SIGBUS)]
}

/// The signals that the program cannot block: far memory needs them.
pub(crate) fn ours() -> u64 {
    OURS.load(Ordering::Relaxed) // Relaxed: set before the filter is
}

/// This process is the one.
pub(crate) fn in_this_process() {
    // SAFETY: no preconditions. The C library's own may be the number of the parent.
    let process = unsafe { raw::call(libc::SYS_getpid, [0; 6]) };
    PROCESS.store(process as i32, Ordering::Relaxed); // Relaxed: there is one thread
}

/// Whether the calling process is a child of `vfork`, or of another call that runs no fork handlers.
pub(super) fn in_other_process() -> bool {
    // SAFETY: no preconditions.
    let process = unsafe { raw::call(libc::SYS_getpid, [0; 6]) };
    process != PROCESS.load(Ordering::Relaxed) as isize // Relaxed: set before the filter is
}

pub(super) type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Has a signal come to `handler`, and unblocks it.
pub(super) fn take(signal: c_int, handler: Handler) -> Result<(), c_int> {
    // SAFETY: all zero bytes are a valid action.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // On the stack that the thread is on: what stands on another one is the program's.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
    // SAFETY: a plain set, of which the kernel reads the first eight bytes.
    unsafe { (&raw mut action.sa_mask).cast::<u64>().write(MEANWHILE) };
    // SAFETY: all zero bytes are a valid action.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: both structures are valid; the handler keeps to what a handler may do.
    if unsafe { libc::sigaction(signal, &raw const action, &raw mut before) } != 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: a plain set of eight bytes and more.
    let blocked = unsafe { (&raw const before.sa_mask).cast::<u64>().read() };
    *lock(signal) =
        Action { handler: before.sa_sigaction, flags: before.sa_flags as usize, restorer: 0, blocked };
    OURS.fetch_or(bit(signal), Ordering::Relaxed); // Relaxed: before the filter is set
    let set = bit(signal);
    let set = (&raw const set).addr();
    let arguments = [libc::SIG_UNBLOCK as usize, set, 0, size_of::<u64>(), 0, 0];
    // SAFETY: a set that lives until the call ends.
    unsafe { raw::call(libc::SYS_rt_sigprocmask, arguments) };
    Ok(())
}

fn lock(signal: c_int) -> std::sync::MutexGuard<'static, Action> {
    wanted(signal).lock().unwrap_or_else(PoisonError::into_inner)
}

/// `rt_sigprocmask`: the set that the thread will have is in what the handler returns to.
pub(super) fn set_blocked(trapped: &mut Trapped<'_>, own: &Range<usize>) -> isize {
    let [how, set, old, size, ..] = trapped.arguments();
    if size != size_of::<u64>() {
        return -(libc::EINVAL as isize);
    }
    let mut stays = Stays::new(own);
    let blocked = trapped.blocked();
    let before = *blocked;
    if set != 0 {
        let Some([set]) = program::read(set, &mut stays) else { return -(libc::EFAULT as isize) };
        let set = set as u64;
        *blocked = match how as c_int {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return -(libc::EINVAL as isize),
        } & !ours();
    }
    if old != 0 && !program::write(old, &[before as usize], &mut stays) {
        return -(libc::EFAULT as isize);
    }
    0
}

/// `rt_sigaction`.
pub(super) fn set_action(mut arguments: [usize; 6], own: &Range<usize>) -> isize {
    let [signal, new, old, size, ..] = arguments;
    if size != size_of::<u64>() {
        return -(libc::EINVAL as isize);
    }
    let mut stays = Stays::new(own);
    let mut wish = None;
    if new != 0 {
        let Some([handler, flags, restorer, blocked]) = program::read(new, &mut stays) else {
            return -(libc::EFAULT as isize);
        };
        wish = Some(Action { handler, flags, restorer, blocked: blocked as u64 });
    }
    let signal = signal as c_int;
    let mut before = Action::default();
    if !(1..=64).contains(&signal) || bit(signal) & ours() == 0 {
        if let Some(wish) = &mut wish {
            wish.blocked &= !ours();
            arguments[1] = (&raw const *wish).addr();
        }
        arguments[2] = if old != 0 { (&raw mut before).addr() } else { 0 };
        // SAFETY: the program's call, on structures of our own.
        let answer = unsafe { raw::call(libc::SYS_rt_sigaction, arguments) };
        if answer != 0 {
            return answer;
        }
    } else {
        let mut kept = lock(signal);
        before = *kept;
        // An action that a child of `vfork` sets would be its parent's; `exec` undoes it anyway.
        if let Some(wish) = wish
            && !in_other_process()
        {
            *kept = wish;
        }
    }
    let Action { handler, flags, restorer, blocked } = before;
    if old != 0 && !program::write(old, &[handler, flags, restorer, blocked as usize], &mut stays) {
        return -(libc::EFAULT as isize);
    }
    0
}

/// One of our signals that is not about far memory: as if we were not there.
///
/// # Safety
/// What a handler got, which calls this last.
pub(super) unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let wish = {
        let mut kept = lock(signal);
        let wish = *kept;
        if wish.flags & libc::SA_RESETHAND as usize != 0 {
            *kept = Action::default();
        }
        wish
    };
    // SAFETY: the caller's promise: it is what every handler gets.
    let (sent, context_of) = unsafe { ((*info).si_code <= 0, &mut *context.cast::<ucontext_t>()) };
    if wish.handler == libc::SIG_IGN && sent {
        return;
    }
    if wish.handler == libc::SIG_DFL || wish.handler == libc::SIG_IGN {
        // The process ends by the signal, at the instruction that caused it, or now when it was sent.
        let action = Action::default();
        let at = (&raw const action).addr();
        // SAFETY: an action of our own; the default one needs no handler.
        unsafe { raw::call(libc::SYS_rt_sigaction, [signal as usize, at, 0, size_of::<u64>(), 0, 0]) };
        if sent || signal == libc::SIGSYS {
            // SAFETY: numbers only.
            unsafe {
                let process = raw::call(libc::SYS_getpid, [0; 6]) as usize;
                let thread = raw::call(libc::SYS_gettid, [0; 6]) as usize;
                raw::call(libc::SYS_tgkill, [process, thread, signal as usize, 0, 0, 0]);
            }
        }
        return;
    }
    let own = if wish.flags & libc::SA_NODEFER as usize != 0 { 0 } else { bit(signal) };
    raw::block((*raw::blocked(context_of) | wish.blocked | own) & !ours());
    // SAFETY: the program's own handler, with what the kernel has for it; one that takes the number
    // only does not look at the rest.
    let handler: Handler = unsafe { core::mem::transmute(wish.handler) };
    crate::guard::outside(|| {
        // SAFETY: as above.
        unsafe { handler(signal, info, context) }
    });
}
