//! Programs that a filtered process executes: the kernel keeps the filter across `exec`, but no handler of `SIGSYS`.
//!
//! A child of `vfork` that asks to be traced stops at each signal until its parent says go on, and the parent waits for
//! the `exec` of the child. So a `SIGSYS` between the two would stop both for good. Tracing begins at the `exec` instead,
//! which is when the parent first can see it:
//!
//! ```text
//!   vfork ─► ptrace(PTRACE_TRACEME) ─► sigaction, sigprocmask, … ─► execve ──► the kernel's PTRACE_TRACEME and execve
//!              SIGSYS: answered 0,       SIGSYS: made as ever         SIGSYS, by the filter that was added
//!              adds a filter for execve
//! ```
//!
//! Where addresses are not randomised, an executed program has its C library where this process has its own. The filter
//! would end it by `SIGSYS` before `main`. So the executed program has its addresses randomised again. Where the
//! administrator has switched that off, it is not executed, and the process that tried ends with a message.

use super::pinned::make;
use super::{filter, raw, signals};
use crate::start::{OWN_FAILURE, warn};
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::{c_long, sock_filter};
use std::sync::OnceLock;

/// `personality` with this argument changes nothing and returns the present one.
const ASK: usize = 0xffff_ffff;
/// The bit of the personality that switches randomisation off.
const NOT_RANDOMISED: usize = libc::ADDR_NO_RANDOMIZE as usize;
/// `kcmp`: whether two processes share their memory.
const KCMP_VM: usize = 1;

/// The filter that is added to a child whose tracing is put off. Made ahead: the child runs in its parent's memory.
static ADDED: OnceLock<Vec<sock_filter>> = OnceLock::new();
/// The kernel randomises no addresses, whatever a process asks for (`kernel.randomize_va_space`).
static NEVER_RANDOMISED: AtomicBool = AtomicBool::new(false);

/// Prepares for the filter of a process whose C library has its code at `code`. Returns whether the programs that it
/// executes would have theirs at the same addresses.
pub(super) fn prepare(code: &[Range<usize>]) -> bool {
    let _ = ADDED.set(filter::for_exec(code));
    let setting = std::fs::read_to_string("/proc/sys/kernel/randomize_va_space");
    let never = setting.is_ok_and(|setting| setting.trim() == "0");
    NEVER_RANDOMISED.store(never, Ordering::Relaxed); // Relaxed: before the filter is installed
    never || personality(ASK) & NOT_RANDOMISED != 0
}

/// Sets the calling thread's personality, which its next program inherits, and returns the one before.
fn personality(new: usize) -> usize {
    // SAFETY: numbers only.
    unsafe { raw::call(libc::SYS_personality, [new, 0, 0, 0, 0, 0]) as usize }
}

/// `ptrace(PTRACE_TRACEME)`: in a child of `vfork`, done when it executes its program.
pub(super) fn trace_me(arguments: [usize; 6], blocked: u64) -> isize {
    if signals::in_other_process()
        && shares_memory_with_parent()
        && ADDED.get().is_some_and(|added| filter::install(added).is_ok())
    {
        return 0;
    }
    make(libc::SYS_ptrace, arguments, blocked)
}

/// Returns whether this process shares its address space with its parent, as a child of `vfork` does; also `true` where the
/// kernel does not say.
fn shares_memory_with_parent() -> bool {
    // SAFETY: numbers only.
    unsafe {
        let process = raw::call(libc::SYS_getpid, [0; 6]) as usize;
        let parent = raw::call(libc::SYS_getppid, [0; 6]) as usize;
        raw::call(libc::SYS_kcmp, [process, parent, KCMP_VM, 0, 0, 0]) <= 0
    }
}

/// `execve` and `execveat`; `put_off`: the process asked to be traced.
pub(super) fn execute(number: c_long, arguments: [usize; 6], blocked: u64, put_off: bool) -> isize {
    // Relaxed: set before the filter was installed.
    if NEVER_RANDOMISED.load(Ordering::Relaxed) {
        refuse();
    }
    // A path that cannot be executed leaves the process untraced: it may try the next folder of its PATH. Folders and files
    // of unknown format are not told apart.
    if put_off && is_executable(number, arguments) {
        // SAFETY: numbers only.
        unsafe { raw::call(libc::SYS_ptrace, [libc::PTRACE_TRACEME as usize, 0, 0, 0, 0, 0]) };
    }
    let before = personality(ASK);
    if before & NOT_RANDOMISED != 0 {
        personality(before & !NOT_RANDOMISED);
    }
    let refused = make(number, arguments, blocked);
    if before & NOT_RANDOMISED != 0 {
        personality(before);
    }
    refused
}

fn is_executable(number: c_long, arguments: [usize; 6]) -> bool {
    let here = libc::AT_FDCWD as usize;
    let (folder, path) =
        if number == libc::SYS_execve { (here, arguments[0]) } else { (arguments[0], arguments[1]) };
    // By its descriptor alone: the name is empty.
    let by_descriptor = number == libc::SYS_execveat && arguments[4] & libc::AT_EMPTY_PATH as usize != 0;
    let access = [folder, path, libc::X_OK as usize, 0, 0, 0];
    // SAFETY: the program hands the same path to the kernel, which checks its address.
    by_descriptor || unsafe { raw::call(libc::SYS_faccessat, access) } == 0
}

/// The process ends instead of becoming a program that the filter would end.
fn refuse() -> ! {
    warn(
        "a program is not executed: the filter of far memory would end it, because this machine does not \
         randomise addresses: sysctl kernel.randomize_va_space=2, or --fault-engine events",
    );
    // SAFETY: no preconditions; a child of `vfork` must not run exit handlers.
    unsafe { libc::_exit(OWN_FAILURE) }
}

/// Whether a trapped `execve` comes from a process that [`trace_me`] added the filter to.
pub(super) fn is_put_off(mark: c_int) -> bool {
    mark == filter::PUT_OFF as c_int
}
