//! Blocks signals of the calling thread while it holds locks of the library.
//!
//! # No handler waits for its own thread
//! A handler of the program may call any async-signal-safe function, `write` and `fork` among them, and may access far
//! memory. Both can need a lock of the library: the system call in the filter (`io/`), the access in the thread that
//! handles faults, `fork` in the fork handlers. If the interrupted thread held that lock, it would wait for itself. So
//! a thread of the program blocks its signals before it takes any lock of the library, and unblocks them after it has
//! released the last one. The kernel delivers signals that arrive in between after that.
//!
//! The library's handlers of `SIGSYS` and `SIGBUS` block signals by `sa_mask`, and its threads block them always.
//!
//! This file makes system calls by its own instruction, since the filter would redirect those of the C library to
//! `io/`.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, Ordering};

/// Signals that an instruction of the thread itself raises. The kernel ends a process that raises one of them while it
/// is blocked.
const SYNCHRONOUS: [c_int; 6] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];

/// The C library uses signals 32 and 33 and never lets a program block them: `setuid` and similar calls wait until
/// every thread has handled one.
const OF_THE_C_LIBRARY: u64 = bit(32) | bit(33);

/// Bit set of the signals that the program cannot block.
static KEPT_OPEN: AtomicU64 = AtomicU64::new(0);

/// Returns the bit of a signal in the kernel's signal sets.
pub(crate) const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Excludes a signal, which the kernel raises for far memory, from every set of blocked signals from now on.
#[cfg(target_arch = "x86_64")]
pub(crate) fn keep_open(signal: c_int) {
    KEPT_OPEN.fetch_or(bit(signal), Ordering::Relaxed); // Relaxed: before the filter is installed
}

/// Returns the bit set of the signals that the program cannot block, because far memory needs them.
pub(crate) fn kept_open() -> u64 {
    // Relaxed: set before the filter is installed, while the program has one thread.
    KEPT_OPEN.load(Ordering::Relaxed)
}

/// A guard that blocks signals in the calling thread until it is dropped.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// The set of signals that the thread had blocked before, as bits.
    before: u64,
}

impl Blocked {
    /// Blocks every signal that another thread, process or timer may send, so that no handler of the program interrupts
    /// the calling thread.
    pub(crate) fn handlers() -> Blocked {
        Blocked::all_but(&SYNCHRONOUS)
    }

    /// Blocks every signal that may be blocked, except `let_through`.
    pub(crate) fn all_but(let_through: &[c_int]) -> Blocked {
        let open = OF_THE_C_LIBRARY | kept_open();
        let open = let_through.iter().fold(open, |open, &signal| open | bit(signal));
        Blocked { before: change(libc::SIG_BLOCK, !open) }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // A filter that was installed in between needs its signals.
        change(libc::SIG_SETMASK, self.before & !kept_open());
    }
}

/// Changes the calling thread's set of blocked signals without changing `errno`. Returns the previous set.
fn change(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    let (new, old) = ((&raw const set).addr(), (&raw mut before).addr());
    let arguments = [how.cast_unsigned() as usize, new, old, size_of::<u64>(), 0, 0];
    // SAFETY: both sets have the eight bytes that the call states, and live until it ends.
    unsafe { largesse_pages::raw_call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Aborts unless `SIGALRM`, which is checked in place of all signals, is blocked in the calling thread.
#[cfg(all(debug_assertions, not(test)))]
pub(crate) fn check_that_handlers_are_blocked() {
    if change(libc::SIG_BLOCK, 0) & bit(libc::SIGALRM) == 0 {
        crate::message::die(&["largesse's own code takes a lock that a signal handler can want"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        change(libc::SIG_BLOCK, 0)
    }

    #[test]
    fn only_asynchronous_signals_are_blocked() {
        let before = blocked();
        {
            let _outer = Blocked::handlers();
            let _inner = Blocked::handlers();
            for signal in [libc::SIGALRM, libc::SIGTERM, libc::SIGUSR1, libc::SIGPROF, 34, 64] {
                assert_ne!(blocked() & bit(signal), 0, "Signal {signal} could interrupt.");
            }
            for signal in SYNCHRONOUS.into_iter().chain([32, 33]) {
                assert_eq!(blocked() & bit(signal), before & bit(signal), "Signal {signal} is blocked.");
            }
        }
        assert_eq!(blocked(), before, "The set of blocked signals was not restored.");
    }
}
