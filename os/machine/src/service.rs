//! Starts and counts the library's own threads in the process of a program.
//!
//! They are detached, receive none of the program's signals, and are counted, so that the program's threads can be
//! counted without them.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

/// Number of service threads that are running in this process.
///
/// A thread is counted from its first instruction until its work is done. So a service thread that is about to begin or
/// to end is taken for one of the program's, but a thread of the program is never taken for a service thread.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Number of service threads between `pthread_create` and their first instruction.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// Starts a detached thread called `name` (at most 15 bytes) with a stack of `stack` bytes.
///
/// The thread blocks every signal except those in `unblocked`, because a handler of the program must not run in it. The
/// standard library's threads are not used: they take a lock of the dynamic linker, which a forked child may find
/// taken.
///
/// # Errors
/// An error is returned if the C library cannot start a thread.
pub fn start<W>(name: &'static CStr, stack: usize, unblocked: &[c_int], work: W) -> io::Result<()>
where
    W: FnOnce() + Send + 'static,
{
    let start = Box::into_raw(Box::new((name, work)));
    // SAFETY: plain C calls on local structures that are initialised first. The new thread owns the box.
    let refused = unsafe {
        let mut blocked: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        let mut thread: libc::pthread_t = 0;
        libc::sigfillset(&raw mut blocked);
        for &signal in unblocked {
            libc::sigdelset(&raw mut blocked, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before);
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&raw mut attributes, stack);
        STARTING.fetch_add(1, Ordering::Relaxed); // Relaxed: as in `run`
        let refused = libc::pthread_create(&raw mut thread, &raw const attributes, run::<W>, start.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        refused
    };
    if refused != 0 {
        STARTING.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `run`
        // SAFETY: no thread was started, so the box still belongs to this one.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(refused));
    }
    Ok(())
}

extern "C" fn run<W: FnOnce()>(start: *mut c_void) -> *mut c_void {
    RUNNING.fetch_add(1, Ordering::Relaxed); // Relaxed: the number publishes nothing else
    STARTING.fetch_sub(1, Ordering::Release); // Release: pairs with the Acquire in `starting`
    // SAFETY: `start` made this box for this thread alone.
    let (name, work) = *unsafe { Box::from_raw(start.cast::<(&CStr, W)>()) };
    // SAFETY: names the calling thread; the text is a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    work();
    RUNNING.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
    null_mut()
}

/// Returns the number of service threads that are running in this process.
#[must_use]
pub fn running() -> u32 {
    RUNNING.load(Ordering::Relaxed) // Relaxed: as in `run`
}

/// Returns the number of service threads that were started but are not counted by [`running`] yet.
#[must_use]
pub fn starting() -> u32 {
    STARTING.load(Ordering::Acquire) // Acquire: a thread that has left this count is in `RUNNING`
}

/// Sets the number of service threads to 0, for a forked child, which inherits none of them.
pub fn forget() {
    RUNNING.store(0, Ordering::Relaxed); // Relaxed: the child has one thread
    STARTING.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn service_thread_counts_and_blocks_signals() {
        let (into, from) = channel();
        let (stop, stopped) = channel::<()>();
        let work = move || {
            // SAFETY: both sets are local; a mask of NULL queries the current one.
            let blocks = unsafe {
                let mut mask: libc::sigset_t = core::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), &raw mut mask);
                [libc::SIGTERM, libc::SIGBUS].map(|signal| libc::sigismember(&raw const mask, signal) == 1)
            };
            into.send(blocks).unwrap();
            let _ = stopped.recv();
        };
        start(c"a-service", 64 << 10, &[libc::SIGBUS], work).unwrap();
        assert_eq!(from.recv().unwrap(), [true, false], "SIGTERM must be blocked, SIGBUS must not");
        assert_eq!(running(), 1, "number of running service threads");
        drop(stop);
        while running() != 0 {
            std::thread::yield_now();
        }
    }
}
