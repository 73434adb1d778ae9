//! Exports the cycle counter to callers in C (`include/largesse.h`).
//!
//! The first call measures the counter's frequency, outside the guard `Inside`, because reading a folder allocates from
//! the C library.

use crate::signals::Blocked;
use core::ffi::c_char;
use largesse_machine::cycles::{Counter, CounterSource, Ticks};
use std::sync::OnceLock;

fn counter() -> &'static Counter {
    static COUNTER: OnceLock<Counter> = OnceLock::new();
    COUNTER.get_or_init(|| {
        let _blocked = Blocked::handlers();
        Counter::calibrate()
    })
}

/// Returns a reading of the cycle counter, in ticks.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cycles_now() -> u64 {
    counter().ordered().count()
}

/// Converts a difference of two counter readings, in ticks, to nanoseconds.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cycles_to_ns(cycles: u64) -> f64 {
    counter().nanoseconds(Ticks::new(cycles))
}

/// Returns the cycle counter's ticks per second, and writes the name of the counter to `name`.
///
/// # Safety
/// `name` must be NULL or writable.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_cycles_per_second(name: *mut *const c_char) -> f64 {
    let counter = counter();
    let source = match counter.source() {
        CounterSource::Tsc => c"TSC",
        CounterSource::VirtualCounter => c"CNTVCT",
        CounterSource::Clock => c"clock",
    };
    if !name.is_null() {
        // SAFETY: the caller's promise.
        unsafe { name.write(source.as_ptr()) };
    }
    counter.hertz()
}
