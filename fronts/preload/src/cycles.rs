//! The cycle counter, for callers in C (`include/largesse.h`).
//!
//! The first call measures its frequency, not `Inside` our code: reading a folder asks the C library for memory.

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

/// A reading of the counter.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cycles_now() -> u64 {
    counter().ordered().count()
}

/// Time for a difference of two readings.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn largesse_cycles_to_ns(cycles: u64) -> f64 {
    counter().nanoseconds(Ticks::new(cycles))
}

/// Ticks in a second, and what counts.
///
/// # Safety
/// `name` is NULL or can be written.
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
