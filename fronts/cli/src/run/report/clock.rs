//! Reads the clock by which processes date their records.

/// Returns the nanoseconds of `CLOCK_MONOTONIC`, by which processes date their records.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}
