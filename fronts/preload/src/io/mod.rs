//! Intercepts system calls that use far memory, where the kernel cannot wait for far pages.
//!
//! # Picture
//! ```text
//!   the C library ──system call──► filter ──no far pointer──► kernel
//!                                    │SIGSYS
//!                                    ▼
//!                   serve: pins the memory ──the same call──► kernel
//! ```
//! With [`OpenMethod::UserModeOnly`](largesse_pages::fault::OpenMethod), which every user may use, and with the
//! in-thread engine, only faults of the program's instructions are served; a system call that meets a far page fails
//! with `EFAULT`. The filter (`seccomp(2)`) costs calls without pointers into far memory a few comparisons, and also
//! sees those that the C library makes on its own: `fread`, locks, `printf`. Calls by other code are not trapped.
//! # Knows / does not know
//! Knows the kernel's calling convention and what arguments point to. Does not know how pages are filled.

#![expect(clippy::cast_sign_loss, reason = "registers, and numbers of the kernel's interface")]

mod buffers;
mod calls;
mod exec;
mod filter;
mod in_thread;
mod program;
mod raw;
mod serve;
mod signals;
mod structures;

use crate::errno::Errno;
use crate::settings::options;
use crate::signals::bit;
use crate::slots::object::each_object;
use core::ffi::{c_int, c_void};
use core::ops::Range;
pub(crate) use filter::FilteredThreads;
use raw::Trapped;
pub(crate) use signals::in_this_process;

/// A filter that is built, but not installed yet.
#[derive(Debug)]
pub(crate) struct PreparedFilter {
    program: Vec<libc::sock_filter>,
    /// Whether the filter comes with the handler of the in-thread engine.
    in_thread: bool,
}

impl PreparedFilter {
    /// Returns the bit set of the signals that no thread may block under the filter.
    pub(crate) fn signals(&self) -> u64 {
        bit(libc::SIGSYS) | if self.in_thread { bit(libc::SIGBUS) } else { 0 }
    }
}

/// Builds the filter for system calls on `far`. Files are opened only here, and not when it is installed. The error is
/// the kernel's `errno`, if it allows no filter.
pub(crate) fn prepare(far: &[Range<usize>], in_thread: bool) -> Result<PreparedFilter, c_int> {
    filter::is_available()?;
    let code = code();
    // A program that executes another one may have the arguments in small blocks.
    let exec = exec::prepare(&code) || options().small_blocks;
    Ok(PreparedFilter { program: filter::program(far, &code, exec), in_thread })
}

/// Installs the handlers that the filter needs, and unblocks their signals in the calling thread and in the handlers that
/// the program has. No other thread runs. The error is the kernel's `errno`.
pub(crate) fn take_signals(prepared: &PreparedFilter) -> Result<(), c_int> {
    in_this_process();
    if prepared.in_thread {
        in_thread::install()?;
    }
    signals::take(libc::SIGSYS, trapped)?;
    signals::unblock_in_handlers();
    serve::keep_present_signal_stack();
    Ok(())
}

/// Installs the filter for `threads` and those they start later, after [`take_signals`]. The error is the kernel's
/// `errno`.
pub(crate) fn install(prepared: &PreparedFilter, threads: FilteredThreads) -> Result<(), c_int> {
    filter::install(&prepared.program, threads)
}

/// Returns the address ranges of the code that makes the C library's system calls: its own, and the kernel's vDSO.
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

/// Handles `SIGSYS`: makes the trapped call and sets its result. Nothing else of the program changes, not even `errno`.
unsafe extern "C" fn trapped(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let errno = Errno::save();
    // SAFETY: the kernel passes both to the handler.
    let Some(mut call) = (unsafe { Trapped::new(info, context.cast()) }) else {
        // SAFETY: as above, and nothing follows in this handler.
        return unsafe { signals::pass_on(signal, info, context) };
    };
    let (number, arguments) = (call.number(), call.arguments());
    let blocked = *call.blocked();
    if calls::lends(number, &arguments)
        && let Some(far) = crate::heap::far()
    {
        far.pager().kernel().lend();
    }
    let own = call.own_stacks();
    let asked = serve::CallRequest { number, arguments, blocked, own: &own };
    let answer = match number {
        libc::SYS_rt_sigprocmask => signals::set_blocked(&mut call, &own),
        libc::SYS_rt_sigaction => signals::set_action(arguments, &own),
        libc::SYS_sigaltstack => serve::signal_stack(asked),
        libc::SYS_ptrace => exec::trace_me(arguments, blocked),
        libc::SYS_execve | libc::SYS_execveat => exec::execute(number, asked, exec::is_put_off(call.mark())),
        _ => match calls::find(number) {
            Some(row) => serve::serve(row, asked),
            // A filter of the program's own raised the signal.
            // SAFETY: as above, and nothing follows in this handler.
            None => return unsafe { signals::pass_on(signal, info, context) },
        },
    };
    call.answer(answer);
    errno.put();
}
