//! Signals of the calling thread, blocked for a while.
//!
//! # Never a lock that a handler can want
//! A handler of the program may call whatever is async-signal-safe, `write` and `fork` among them, and may touch far
//! memory. Both can need a lock of ours: the system call by way of the filter (`io/`), the touch by way of the thread that
//! serves faults, `fork` by way of our fork handlers. If the interrupted thread held that lock, it would wait for itself.
//! So a thread of the program blocks its signals before it takes any lock of ours, and unblocks them after it has
//! released the last one. The kernel keeps signals that arrive in between, and delivers them then.
//!
//! Our handlers of `SIGSYS` and `SIGBUS` run with signals blocked by `sa_mask`, and our own threads block them for good.
//!
//! These are system calls by an instruction of our own: the filter would send those of the C library to `io/`.

use core::ffi::c_int;

/// Signals that an instruction of the thread itself raises. The kernel ends a process that blocks one of them when it is
/// raised.
const SYNCHRONOUS: [c_int; 6] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];

/// The C library's own signals 32 and 33, which it never lets a program block: `setuid` and its kin wait until every
/// thread has handled one.
const OF_THE_C_LIBRARY: u64 = bit(32) | bit(33);

/// The bit of a signal in the kernel's sets.
const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// While it lives, the calling thread has more signals blocked.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// The set before.
    before: u64,
}

impl Blocked {
    /// Blocks every signal that another thread, process or timer may send, so that no handler of the program interrupts
    /// the calling thread.
    pub(crate) fn handlers() -> Blocked {
        Blocked::all_but(&SYNCHRONOUS)
    }

    /// Blocks every signal that may be blocked, but for some.
    pub(crate) fn all_but(let_through: &[c_int]) -> Blocked {
        let open = OF_THE_C_LIBRARY | crate::io::ours();
        let open = let_through.iter().fold(open, |open, &signal| open | bit(signal));
        Blocked { before: change(libc::SIG_BLOCK, !open) }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        change(libc::SIG_SETMASK, self.before);
    }
}

/// Changes the calling thread's set of blocked signals, and returns the one before. Leaves `errno` alone.
fn change(how: c_int, set: u64) -> u64 {
    let mut before = 0_u64;
    let (new, old) = ((&raw const set).addr(), (&raw mut before).addr());
    let arguments = [how.cast_unsigned() as usize, new, old, size_of::<u64>(), 0, 0];
    // SAFETY: both sets are eight bytes, as the kernel is told, and live until the call ends.
    unsafe { largesse_pages::raw_call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Aborts unless `SIGALRM`, which is checked in place of all signals, is blocked in the calling thread.
#[cfg(all(debug_assertions, not(test)))]
pub(crate) fn check_that_handlers_are_blocked() {
    if change(libc::SIG_BLOCK, 0) & bit(libc::SIGALRM) == 0 {
        crate::start::die(&["largesse's own code takes a lock that a signal handler can want"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked() -> u64 {
        change(libc::SIG_BLOCK, 0)
    }

    #[test]
    fn handlers_wait_and_synchronous_signals_do_not() {
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
