//! Starts and counts the library's own threads in the process of a program.
//!
//! Service threads receive none of the program's signals, and are counted, so that the program's own threads can be
//! counted without them. Every thread that the library runs in the process of a program is started here, with one
//! exception: the thread that calls `exit(0)` for a program whose threads have all ended
//! (`fronts/preload/src/last_thread.rs`) is like one of the program's. The standard library's threads are not used in
//! a program, because they take a lock of the dynamic linker, which another thread may hold when the program forks.
//! They are used in the processes of Largesse's own programs: the commands, the agent, MPI ranks, and the Lisp with
//! the garbage-collected heap.

use crate::{process, thread};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::io;

/// Number of service threads that are running in this process.
///
/// A thread is counted from its first instruction until its work is done. So a service thread that is about to begin or
/// to end is taken for one of the program's, but a thread of the program is never taken for a service thread.
static RUNNING: AtomicU32 = AtomicU32::new(0);
/// Number of service threads between `pthread_create` and their first instruction.
static STARTING: AtomicU32 = AtomicU32::new(0);

/// Numbers of the service threads that are running; 0 in free places. Threads for which there is no place are not listed.
static THREADS: [AtomicU32; MOST_LISTED] = [const { AtomicU32::new(0) }; MOST_LISTED];
const MOST_LISTED: usize = 256;

/// Size in bytes of the thread-local data of the program and its libraries, which the C library puts on each thread's
/// stack.
static THREAD_LOCAL: AtomicUsize = AtomicUsize::new(0);

/// Tells the size of the program's thread-local data, so that the stacks of all service threads that start from now on
/// have room for them.
pub fn set_thread_local_size(bytes: usize) {
    THREAD_LOCAL.store(bytes, Ordering::Relaxed); // Relaxed: a number by itself
}

/// Starts a detached thread called `name` (at most 15 bytes) with a stack of `stack` bytes, and room for
/// [thread-local data](set_thread_local_size).
///
/// The thread blocks every signal except those in `unblocked`, because a handler of the program must not run in it, and
/// except `SIGSYS`: a filter of system calls may be added to all threads later, and the kernel kills a thread that blocks
/// the filter's signal.
///
/// # Errors
/// An error is returned if the C library cannot start a thread.
pub fn start<W>(name: &'static CStr, stack: usize, unblocked: &[c_int], work: W) -> io::Result<()>
where
    W: FnOnce() + Send + 'static,
{
    // SAFETY: `work` borrows nothing.
    unsafe { create(name, stack, unblocked, libc::PTHREAD_CREATE_DETACHED, work) }.map(|_| ())
}

/// Runs `work` in a service thread of its own, waits for the thread's end, and returns the result of `work`. It is
/// meant for questions to the kernel that change the state of the thread that asks.
///
/// # Errors
/// An error is returned if the C library cannot start a thread.
pub fn ask<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    const STACK: usize = 128 << 10;
    let mut answer = None;
    let ask = || answer = Some(work());
    // SAFETY: the thread ends before the borrows of `ask` do, since it is joined below.
    let thread = unsafe { create(c"largesse-ask", STACK, &[], libc::PTHREAD_CREATE_JOINABLE, ask)? };
    // SAFETY: the thread is joinable, and no other thread knows it.
    let refused = unsafe { libc::pthread_join(thread, null_mut()) };
    answer.ok_or_else(|| io::Error::from_raw_os_error(refused))
}

/// Starts a service thread. `state` is `PTHREAD_CREATE_DETACHED` or `PTHREAD_CREATE_JOINABLE`.
///
/// # Safety
/// What `work` borrows must live until the thread has ended.
unsafe fn create<W: FnOnce() + Send>(
    name: &'static CStr,
    stack: usize,
    unblocked: &[c_int],
    state: c_int,
    work: W,
) -> io::Result<libc::pthread_t> {
    let start = Box::into_raw(Box::new((name, work)));
    let mut thread: libc::pthread_t = 0;
    // SAFETY: plain C calls on local structures that are initialised first. The new thread owns the box.
    let refused = unsafe {
        let mut blocked: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        libc::sigfillset(&raw mut blocked);
        for &signal in unblocked.iter().chain([&libc::SIGSYS]) {
            libc::sigdelset(&raw mut blocked, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const blocked, &raw mut before);
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setdetachstate(&raw mut attributes, state);
        // Relaxed: as in `set_thread_local_size`.
        let stack = stack + THREAD_LOCAL.load(Ordering::Relaxed);
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
    Ok(thread)
}

extern "C" fn run<W: FnOnce()>(start: *mut c_void) -> *mut c_void {
    RUNNING.fetch_add(1, Ordering::Relaxed); // Relaxed: the number publishes nothing else
    let own = thread::id();
    replace_listed(0, own);
    STARTING.fetch_sub(1, Ordering::Release); // Release: pairs with the Acquire in `starting`
    // SAFETY: `create` made this box for this thread alone.
    let (name, work) = *unsafe { Box::from_raw(start.cast::<(&CStr, W)>()) };
    // SAFETY: names the calling thread; the text is a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    // The starting thread may be bound to one processor, where this one would only take turns with it.
    process::adopt(&process::mask(None));
    work();
    replace_listed(own, 0);
    RUNNING.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
    null_mut()
}

/// Replaces one listed number by another.
fn replace_listed(before: u32, after: u32) {
    // Relaxed: a number by itself.
    let replaced = |place: &AtomicU32| {
        place.compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let _ = THREADS.iter().any(replaced);
}

/// Returns whether the thread with this number is known to be a service thread.
#[must_use]
pub fn is_listed(thread: u32) -> bool {
    THREADS.iter().any(|place| place.load(Ordering::Relaxed) == thread) // Relaxed: as above
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
    THREADS.iter().for_each(|place| place.store(0, Ordering::Relaxed)); // Relaxed: the child has one thread
    RUNNING.store(0, Ordering::Relaxed);
    STARTING.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_is_answered_by_another_thread() {
        let text = String::from("borrowed");
        let ask_thread = || {
            let number = thread::id();
            assert!(is_listed(number), "a service thread must be listed while it runs");
            (this_thread(), text.len())
        };
        let (there, len) = ask(ask_thread).unwrap();
        assert_ne!(this_thread(), there, "the question must run in a thread of its own");
        assert_eq!(len, text.len());
    }

    fn this_thread() -> libc::pthread_t {
        // SAFETY: no preconditions.
        unsafe { libc::pthread_self() }
    }
}
