//! Makes the system calls for futexes, the clock and thread numbers.
#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "numbers of the kernel's interface"
)]

use crate::wait::Among;
use core::ffi::{c_int, c_long};
use core::sync::atomic::AtomicU32;
use core::time::Duration;

const fn flag(among: Among) -> c_int {
    match among {
        Among::Threads => libc::FUTEX_PRIVATE_FLAG,
        Among::Processes => 0,
    }
}

/// Sleeps while `word` holds `value`, for at most `wait`. It may return early.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, wait: Option<Duration>, among: Among) {
    let timeout = wait.map(|wait| libc::timespec {
        tv_sec: wait.as_secs() as c_long,
        tv_nsec: wait.subsec_nanos() as c_long,
    });
    let timeout = timeout.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let wait = libc::FUTEX_WAIT | flag(among);
    // SAFETY: the word and the timeout outlive the call; a spurious return is allowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, timeout) };
}

/// Wakes at most `most` threads that sleep on the word.
pub(crate) fn futex_wake(word: &AtomicU32, most: c_int, among: Among) {
    let wake = libc::FUTEX_WAKE | flag(among);
    // SAFETY: waking reads nothing but the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, most) };
}

pub(crate) fn now_seconds() -> u32 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a writable `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u32
}

pub(crate) fn thread_handle() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}
