//! System calls on far memory where the kernel cannot wait for far pages.
//!
//! # Picture
//! ```text
//!   the C library ──system call──► filter ──no far pointer──► kernel
//!                                    │SIGSYS
//!                                    ▼
//!                   serve: the memory stays here ──the same call──► kernel
//! ```
//! With [`Way::UserModeOnly`](largesse_pages::fault::Way), which every user has, and with the in-thread
//! engine, only instructions of the program are served; a system call that meets a far page fails
//! with `EFAULT`. The filter (`seccomp(2)`) costs calls that are not handed far memory a few
//! comparisons, and sees those too that the C library makes on its own: `fread`, locks, `printf`.
//! Calls that are made by other code are not looked at.
//! # Knows / does not know
//! Knows the kernel's calling convention and what arguments point to. Does not know how pages come.

#![expect(clippy::cast_sign_loss, reason = "registers, and numbers of the kernel's interface")]

mod buffers;
mod calls;
mod filter;
mod in_thread;
mod program;
mod raw;
mod serve;
mod signals;
mod stay;

use crate::errno::Errno;
use crate::slots::object::each_object;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use raw::Trapped;
pub(crate) use signals::in_this_process;

/// From now on system calls on `far` work, in this thread and those it starts; `in_thread`: so do
/// its faults. The error is the kernel's `errno`.
pub(crate) fn install(far: &[Range<usize>], in_thread: bool) -> Result<(), c_int> {
    in_this_process();
    if in_thread {
        in_thread::install()?;
    }
    signals::take(libc::SIGSYS, trapped)?;
    let program = filter::program(far, &code());
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW as usize;
    let arguments = [libc::SECCOMP_SET_MODE_FILTER as usize, flags, (&raw const program).addr(), 0, 0, 0];
    // SAFETY: the program is valid until the call ends, and the kernel checks it.
    let mut answer = unsafe { raw::call(libc::SYS_seccomp, arguments) };
    if answer == -(libc::EACCES as isize) {
        // Who may not administer the system must promise that nothing it starts gains rights.
        // SAFETY: numbers only.
        unsafe { raw::call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0]) };
        // SAFETY: as above.
        answer = unsafe { raw::call(libc::SYS_seccomp, arguments) };
    }
    if answer == 0 { Ok(()) } else { Err(-answer as c_int) }
}

/// Where the C library's code is, and the kernel's page that makes calls for it.
fn code() -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let known = [libc::read as *const () as usize, libc::pthread_mutex_lock as *const () as usize];
    each_object(|object| found.extend(known.iter().find_map(|&at| object.code_around(at))));
    // SAFETY: no preconditions.
    let page = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    if page != 0 {
        found.push(page..page + 2 * largesse_pages::base_page());
    }
    found
}

/// The handler of `SIGSYS`. The program sees the answer alone: not even `errno` changes.
unsafe extern "C" fn trapped(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = Errno::save();
    // SAFETY: the kernel's own.
    let Some(mut call) = (unsafe { Trapped::new(info, context.cast()) }) else {
        // SAFETY: as above, and last.
        return unsafe { signals::pass_on(signal, info, context) };
    };
    let (number, arguments) = (call.number(), call.arguments());
    let blocked = *call.blocked();
    if calls::lends(number, &arguments)
        && let Some(far) = crate::serve::far()
    {
        far.pager().kernel().lend();
    }
    let own = call.signal_stack();
    let asked = serve::Asked { number, arguments, blocked, own: &own };
    let answer = match number {
        libc::SYS_rt_sigprocmask => signals::set_blocked(&mut call, &own),
        libc::SYS_rt_sigaction => signals::set_action(arguments, &own),
        libc::SYS_sigaltstack => serve::signal_stack(asked),
        _ => match calls::find(number) {
            Some(row) => serve::serve(row, asked),
            // SAFETY: as above, and last: it is a filter of the program's own.
            None => return unsafe { signals::pass_on(signal, info, context) },
        },
    };
    call.answer(answer);
    errno.put();
}
