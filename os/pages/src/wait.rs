//! Waiting on an address, and the few facts about time and threads that a lock needs.

use crate::sys;
use core::sync::atomic::AtomicU32;

/// Who may wait at an address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Among {
    /// Threads of this process.
    Threads,
    /// Whoever maps it.
    #[cfg_attr(miri, expect(dead_code, reason = "one process"))]
    Processes,
}

/// Sleep while `word` holds `value` (may return early).
pub fn wait_while(word: &AtomicU32, value: u32) {
    sys::futex_wait(word, value, None, Among::Threads);
}

/// Sleep while `word` holds `value`, at most so many seconds (may return early).
pub fn wait_while_for(word: &AtomicU32, value: u32, seconds: u32) {
    sys::futex_wait(word, value, Some(u64::from(seconds) * 1000), Among::Threads);
}

/// Wake one sleeper.
pub fn wake_one(word: &AtomicU32) {
    sys::futex_wake(word, 1, Among::Threads);
}

/// Seconds of a coarse, monotonic clock (a few nanoseconds to read).
#[must_use]
pub fn now_seconds() -> u32 {
    sys::now_seconds()
}

/// What the threads of a process are told apart by: not 0, and even. A forked child keeps its thread's.
#[must_use]
pub fn thread_handle() -> usize {
    sys::thread_handle()
}

/// The kernel's number for the calling thread.
#[must_use]
pub fn thread_id() -> u32 {
    sys::thread_id()
}
