//! System calls on far memory where the kernel cannot wait for far pages.
//!
//! # Picture
//! ```text
//!   the C library ──system call──► filter ──no far pointer──► kernel
//!                                    │SIGSYS
//!                                    ▼
//!                   serve: the memory stays here ──the same call──► kernel
//! ```
//! With [`OpenMethod::UserModeOnly`](largesse_pages::fault::OpenMethod), which every user has, and with the in-thread
//! engine, only instructions of the program are served; a system call that meets a far page fails
//! with `EFAULT`. The filter (`seccomp(2)`) costs calls that are not handed far memory a few
//! comparisons, and sees those too that the C library makes on its own: `fread`, locks, `printf`.
//! Calls that are made by other code are not looked at.
//! # Knows / does not know
//! Knows the kernel's calling convention and what arguments point to. Does not know how pages come.

#![expect(clippy::cast_sign_loss, reason = "registers, and numbers of the kernel's interface")]

mod buffers;
mod calls;
mod exec;
mod filter;
mod in_thread;
mod pinned;
mod program;
mod raw;
mod serve;
mod signals;

use crate::errno::Errno;
use crate::slots::object::each_object;
use core::ffi::{c_int, c_void};
use core::ops::Range;
use raw::Trapped;
pub(crate) use signals::{in_this_process, ours};

/// From now on system calls on `far` work, in this thread and those it starts; `in_thread`: so do
/// its faults. The error is the kernel's `errno`.
pub(crate) fn install(far: &[Range<usize>], in_thread: bool) -> Result<(), c_int> {
    in_this_process();
    if in_thread {
        in_thread::install()?;
    }
    signals::take(libc::SIGSYS, trapped)?;
    let code = code();
    let same_addresses = exec::prepare(&code);
    filter::install(&filter::program(far, &code, same_addresses))
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
        libc::SYS_ptrace => exec::trace_me(arguments, blocked),
        libc::SYS_execve | libc::SYS_execveat => {
            exec::execute(number, arguments, blocked, exec::is_put_off(call.mark()))
        }
        _ => match calls::find(number) {
            Some(row) => serve::serve(row, asked),
            // SAFETY: as above, and last: it is a filter of the program's own.
            None => return unsafe { signals::pass_on(signal, info, context) },
        },
    };
    call.answer(answer);
    errno.put();
}
