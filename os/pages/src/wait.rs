//! Provides futex waits, a coarse clock and thread identities, from which locks are built.

use crate::sys;
use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// The threads that may wait on a word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Among {
    /// Only threads of this process wait.
    Threads,
    /// Threads of any process that maps the word wait.
    #[cfg_attr(miri, expect(dead_code, reason = "one process"))]
    Processes,
}

/// Sleeps while `word` holds `value`, until another thread wakes this one. It may return early.
pub fn wait_while(word: &AtomicU32, value: u32) {
    sys::futex_wait(word, value, None, Among::Threads);
}

/// Sleeps while `word` holds `value`, for at most the time `most`. It may return early.
pub fn wait_while_for(word: &AtomicU32, value: u32, most: Duration) {
    sys::futex_wait(word, value, Some(most), Among::Threads);
}

/// Wakes one sleeper on `word`.
pub fn wake_one(word: &AtomicU32) {
    sys::futex_wake(word, 1, Among::Threads);
}

/// Returns the time of a monotonic clock in whole seconds. It takes a few nanoseconds to read.
#[must_use]
pub fn now_seconds() -> u32 {
    sys::now_seconds()
}

/// Returns an even, nonzero number that identifies the calling thread within its process. In a forked child, the
/// thread has the same number as the thread that forked.
#[must_use]
pub fn thread_handle() -> usize {
    sys::thread_handle()
}

/// Returns the kernel's number of the calling thread (`gettid`).
#[must_use]
pub fn thread_id() -> u32 {
    sys::thread_id()
}
