//! Implements `exec` in a filtered process: the kernel keeps the filter across `exec`, but no handler of `SIGSYS`.
//!
//! A child of `vfork` that asks to be traced stops at each signal until its parent continues it, and the parent waits
//! for the `exec` of the child. So a `SIGSYS` in between would deadlock the two. Tracing begins at the `exec` instead,
//! which is when the parent can first see it:
//!
//! ```text
//!   vfork ─► ptrace(PTRACE_TRACEME) ─► sigaction, sigprocmask, … ─► execve ──► the kernel's PTRACE_TRACEME and execve
//!              SIGSYS: returns 0,        SIGSYS: served as usual      SIGSYS, by the filter that was added
//!              adds a filter for execve
//! ```
//!
//! Where addresses are not randomised, an executed program has its C library where this process has its own. The filter
//! would end it by `SIGSYS` before `main`. So the executed program has its addresses randomised again. Where the
//! administrator has switched that off, it is not executed, and the calling process ends with a message.

use super::raw::make;
use super::serve::CallRequest;
use super::{filter, program, raw, signals};
use crate::message::{OWN_FAILURE, warn};
use crate::own_stacks::OwnStacks;
use crate::pinned::PinnedPages;
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use libc::{c_long, sock_filter};
use std::sync::OnceLock;

/// The argument with which `personality` changes nothing and returns the present value.
const ASK: usize = 0xffff_ffff;
/// The bit of the personality that disables address randomisation.
const NOT_RANDOMISED: usize = libc::ADDR_NO_RANDOMIZE as usize;
/// Most bytes of an argument or of a variable of the environment (`MAX_ARG_STRLEN`).
const LONGEST_STRING: usize = 128 << 10;
/// Number of times that `execve` is made while pages of its arguments are evicted in between.
const MOST_TRIES: u32 = 100;
/// The type of `kcmp` that compares the address spaces of two processes.
const KCMP_VM: usize = 1;

/// The second filter, which traps `execve` in a child of `vfork` whose tracing is deferred to that call. It is built
/// when the process starts, because such a child uses the memory of its parent and must not allocate.
static ADDED: OnceLock<Vec<sock_filter>> = OnceLock::new();
/// Whether the kernel randomises no addresses, whatever a process asks for (`kernel.randomize_va_space` is 0).
static NEVER_RANDOMISED: AtomicBool = AtomicBool::new(false);

/// Prepares `exec` for a process that gets the system-call filter and whose C library has its code at `code`. Returns
/// whether programs that it executes would have that code at the same addresses, so that the filter would trap their
/// calls.
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

/// Implements `ptrace(PTRACE_TRACEME)`; a child of `vfork` makes the call only when it executes its program.
pub(super) fn trace_me(arguments: [usize; 6], blocked: u64) -> isize {
    if signals::in_other_process()
        && shares_memory_with_parent()
        && ADDED.get().is_some_and(|added| filter::install(added, filter::FilteredThreads::Calling).is_ok())
    {
        return 0;
    }
    make(libc::SYS_ptrace, arguments, blocked)
}

/// Returns whether this process shares its address space with its parent, as a child of `vfork` does. Returns `true`
/// where the kernel refuses `kcmp`.
fn shares_memory_with_parent() -> bool {
    // SAFETY: numbers only.
    unsafe {
        let process = raw::call(libc::SYS_getpid, [0; 6]) as usize;
        let parent = raw::call(libc::SYS_getppid, [0; 6]) as usize;
        raw::call(libc::SYS_kcmp, [process, parent, KCMP_VM, 0, 0, 0]) <= 0
    }
}

/// Implements `execve` and `execveat`. If `put_off` is true, the process has asked to be traced, and tracing begins
/// just before the call.
pub(super) fn execute(number: c_long, asked: CallRequest<'_>, put_off: bool) -> isize {
    let CallRequest { arguments, blocked, own, .. } = asked;
    // Relaxed: set before the filter was installed.
    if NEVER_RANDOMISED.load(Ordering::Relaxed) {
        refuse();
    }
    // A path that cannot be executed leaves the process untraced: it may try the next folder of its PATH. Folders and
    // files of unknown format count as executable.
    fetch(number, &arguments, own);
    if put_off && is_executable(number, arguments) {
        // SAFETY: numbers only.
        unsafe { raw::call(libc::SYS_ptrace, [libc::PTRACE_TRACEME as usize, 0, 0, 0, 0, 0]) };
    }
    let before = personality(ASK);
    if before & NOT_RANDOMISED != 0 {
        personality(before & !NOT_RANDOMISED);
    }
    let mut refused = make(number, arguments, blocked);
    for _ in 1..MOST_TRIES {
        if refused != -(libc::EFAULT as isize) {
            break;
        }
        fetch(number, &arguments, own);
        refused = make(number, arguments, blocked);
    }
    if before & NOT_RANDOMISED != 0 {
        personality(before);
    }
    refused
}

/// Makes the path, the arguments and the environment of a program to be executed resident. They are not pinned during
/// the call: a child of `vfork` has the pager of its parent, and could not unpin them afterwards.
fn fetch(number: c_long, arguments: &[usize; 6], own: &OwnStacks) {
    let mut pinned = PinnedPages::new(own);
    let path = if number == libc::SYS_execve { 0 } else { 1 };
    program::text(arguments[path], &mut pinned);
    for mut at in [arguments[path + 1], arguments[path + 2]] {
        while let Some([string @ 1..=usize::MAX]) = program::read(at, &mut pinned) {
            program::text_of(string, LONGEST_STRING, &mut pinned);
            at += size_of::<usize>();
        }
    }
}

fn is_executable(number: c_long, arguments: [usize; 6]) -> bool {
    let here = libc::AT_FDCWD as usize;
    let (folder, path) =
        if number == libc::SYS_execve { (here, arguments[0]) } else { (arguments[0], arguments[1]) };
    // The path is empty: the descriptor alone names the file.
    let by_descriptor = number == libc::SYS_execveat && arguments[4] & libc::AT_EMPTY_PATH as usize != 0;
    let access = [folder, path, libc::X_OK as usize, 0, 0, 0];
    // SAFETY: the program hands the same path to the kernel, which checks its address.
    by_descriptor || unsafe { raw::call(libc::SYS_faccessat, access) } == 0
}

/// Ends the process with a message, because the filter would end the program that it wants to execute.
fn refuse() -> ! {
    warn(
        "cannot execute a program: this machine does not randomise addresses, so the system-call filter of far memory \
         would end it; run `sysctl kernel.randomize_va_space=2`, or use --fault-engine events",
    );
    // SAFETY: no preconditions; a child of `vfork` must not run exit handlers.
    unsafe { libc::_exit(OWN_FAILURE) }
}

/// Returns whether a trapped `execve` comes from a process that [`trace_me`] added the filter to.
pub(super) fn is_put_off(mark: c_int) -> bool {
    mark == filter::PUT_OFF as c_int
}
