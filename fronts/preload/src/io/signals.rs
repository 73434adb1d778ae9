//! Shares `SIGSYS` and `SIGBUS` between the program and the library.
//!
//! The kernel kills the program unless our handlers receive the signals that it raises for far memory, whatever the
//! program blocks and whichever handlers it installs. So the calls that change these are trapped, also those that the C
//! library makes on its own: the bits of our signals are removed from every set of signals, and the program's actions
//! for them are stored here.

use super::program;
use super::raw::{self, HANDLER_MASK, Trapped};
use crate::own_stacks::OwnStacks;
use crate::pinned::PinnedPages;
use crate::signals::{bit, keep_open, kept_open};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, Ordering};
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

/// Identifier of the process that the actions in [`WANTED`] belong to. A child of `vfork` shares this memory, but has
/// its own actions.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// The program's actions for `SIGSYS` and `SIGBUS`, in this order.
static WANTED: [Mutex<Action>; 2] =
    [const { Mutex::new(Action { handler: 0, flags: 0, restorer: 0, blocked: 0 }) }; 2];

fn wanted(signal: c_int) -> &'static Mutex<Action> {
    &WANTED[usize::from(signal == libc::SIGBUS)]
}

/// Makes the calling process the owner of the stored actions.
pub(crate) fn in_this_process() {
    // The C library's `getpid` may return the parent's number.
    // SAFETY: no preconditions.
    let process = unsafe { raw::call(libc::SYS_getpid, [0; 6]) };
    PROCESS.store(process as i32, Ordering::Relaxed); // Relaxed: the process has one thread
}

/// Returns whether the calling process is a child of `vfork`, or of another call that runs no fork handlers.
pub(super) fn in_other_process() -> bool {
    // SAFETY: no preconditions.
    let process = unsafe { raw::call(libc::SYS_getpid, [0; 6]) };
    process != PROCESS.load(Ordering::Relaxed) as isize // Relaxed: set before the filter is installed
}

pub(super) type Handler = unsafe extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Installs `handler` for a signal, stores the program's action, and unblocks the signal.
pub(super) fn take(signal: c_int, handler: Handler) -> Result<(), c_int> {
    // SAFETY: all zero bytes are a valid action.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    // Without `SA_ONSTACK`, since the alternate signal stack belongs to the program.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NODEFER;
    // SAFETY: a plain bit set, of which the kernel reads the first eight bytes.
    unsafe { (&raw mut action.sa_mask).cast::<u64>().write(HANDLER_MASK) };
    // SAFETY: all zero bytes are a valid action.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: both structures are valid; the handler does only what a handler may do.
    if unsafe { libc::sigaction(signal, &raw const action, &raw mut before) } != 0 {
        return Err(libc::EINVAL);
    }
    // SAFETY: a plain bit set of at least eight bytes.
    let blocked = unsafe { (&raw const before.sa_mask).cast::<u64>().read() };
    *lock(signal) =
        Action { handler: before.sa_sigaction, flags: before.sa_flags as usize, restorer: 0, blocked };
    keep_open(signal);
    let set = bit(signal);
    let set = (&raw const set).addr();
    let arguments = [libc::SIG_UNBLOCK as usize, set, 0, size_of::<u64>(), 0, 0];
    // SAFETY: the set lives until the call ends.
    unsafe { raw::call(libc::SYS_rt_sigprocmask, arguments) };
    Ok(())
}

/// Removes our signals from the sets that the program's present handlers block while they run: a filter that is
/// installed later would otherwise end the program in one of them. The calling thread is the only one that can change
/// actions.
pub(super) fn unblock_in_handlers() {
    const SIGNALS: c_int = 64;
    for signal in (1..=SIGNALS).filter(|&signal| bit(signal) & kept_open() == 0) {
        let mut action = Action::default();
        let at = (&raw mut action).addr();
        let ask = [signal as usize, 0, at, size_of::<u64>(), 0, 0];
        // SAFETY: the action is our own and lives until the call ends.
        let asked = unsafe { raw::call(libc::SYS_rt_sigaction, ask) };
        if asked == 0 && action.blocked & kept_open() != 0 {
            action.blocked &= !kept_open();
            // SAFETY: as above; the program's handler is installed again as it was.
            unsafe { raw::call(libc::SYS_rt_sigaction, [signal as usize, at, 0, size_of::<u64>(), 0, 0]) };
        }
    }
}

fn lock(signal: c_int) -> std::sync::MutexGuard<'static, Action> {
    wanted(signal).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Implements `rt_sigprocmask` by changing the set of blocked signals in the context that the handler returns to.
pub(super) fn set_blocked(trapped: &mut Trapped<'_>, own: &OwnStacks) -> isize {
    let [how, set, old, size, ..] = trapped.arguments();
    if size != size_of::<u64>() {
        return -(libc::EINVAL as isize);
    }
    let mut pinned = PinnedPages::new(own);
    let blocked = trapped.blocked();
    let before = *blocked;
    if set != 0 {
        let Some([set]) = program::read(set, &mut pinned) else { return -(libc::EFAULT as isize) };
        let set = set as u64;
        *blocked = match how as c_int {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return -(libc::EINVAL as isize),
        } & !kept_open();
    }
    if old != 0 && !program::write(old, &[before as usize], &mut pinned) {
        return -(libc::EFAULT as isize);
    }
    0
}

/// Implements `rt_sigaction`; actions for our signals are stored instead of set.
pub(super) fn set_action(mut arguments: [usize; 6], own: &OwnStacks) -> isize {
    let [signal, new, old, size, ..] = arguments;
    if size != size_of::<u64>() {
        return -(libc::EINVAL as isize);
    }
    let mut pinned = PinnedPages::new(own);
    let mut requested = None;
    if new != 0 {
        let Some([handler, flags, restorer, blocked]) = program::read(new, &mut pinned) else {
            return -(libc::EFAULT as isize);
        };
        requested = Some(Action { handler, flags, restorer, blocked: blocked as u64 });
    }
    let signal = signal as c_int;
    let mut before = Action::default();
    if !(1..=64).contains(&signal) || bit(signal) & kept_open() == 0 {
        if let Some(requested) = &mut requested {
            requested.blocked &= !kept_open();
            arguments[1] = (&raw const *requested).addr();
        }
        arguments[2] = if old != 0 { (&raw mut before).addr() } else { 0 };
        // SAFETY: the program makes this call; it is repeated on structures of our own.
        let answer = unsafe { raw::call(libc::SYS_rt_sigaction, arguments) };
        if answer != 0 {
            return answer;
        }
    } else {
        let mut stored = lock(signal);
        before = *stored;
        // An action set by a child of `vfork` would become its parent's; `exec` resets it anyway.
        if let Some(requested) = requested
            && !in_other_process()
        {
            *stored = requested;
        }
    }
    let Action { handler, flags, restorer, blocked } = before;
    if old != 0 && !program::write(old, &[handler, flags, restorer, blocked as usize], &mut pinned) {
        return -(libc::EFAULT as isize);
    }
    0
}

/// Passes one of our signals that does not concern far memory to the program, as the kernel would without the library.
///
/// # Safety
/// The arguments are those that the kernel passed to the calling handler, which does nothing afterwards.
pub(super) unsafe fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let requested = {
        let mut stored = lock(signal);
        let requested = *stored;
        if requested.flags & libc::SA_RESETHAND as usize != 0 {
            *stored = Action::default();
        }
        requested
    };
    // SAFETY: the caller promises that these are a handler's arguments.
    let (sent, context_of) = unsafe { ((*info).si_code <= 0, &mut *context.cast::<ucontext_t>()) };
    if requested.handler == libc::SIG_IGN && sent {
        return;
    }
    if requested.handler == libc::SIG_DFL || requested.handler == libc::SIG_IGN {
        // The signal ends the process: at the instruction that raised it, or now if a process sent it.
        let action = Action::default();
        let at = (&raw const action).addr();
        // SAFETY: the action is our own, and the default one needs no handler.
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
    let own = if requested.flags & libc::SA_NODEFER as usize != 0 { 0 } else { bit(signal) };
    raw::block((*raw::blocked(context_of) | requested.blocked | own) & !kept_open());
    // SAFETY: the program's own handler, called with the kernel's arguments; one that takes the number only ignores the
    // rest.
    let handler: Handler = unsafe { core::mem::transmute(requested.handler) };
    crate::guard::outside(|| {
        // SAFETY: as above.
        unsafe { handler(signal, info, context) }
    });
}
