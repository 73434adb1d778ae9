//! Reads the virtual counter of AArch64, which runs at one rate on every core.
//!
//! `isb` separates earlier from later instructions; `dsb` waits until earlier memory accesses are complete.

use super::CounterSource;
use super::judge::CounterFacts;
use core::arch::asm;

pub(super) const SOURCE: CounterSource = CounterSource::VirtualCounter;

pub(super) fn facts() -> CounterFacts {
    CounterFacts { known: true, invariant: true, clock_source: Some("arch_sys_counter"), forbidden: false }
}

#[inline]
pub(super) fn start() -> u64 {
    let count: u64;
    // SAFETY: Linux lets every process read this register.
    unsafe { asm!("dsb ish", "isb", "mrs {0}, cntvct_el0", "isb", out(reg) count, options(nostack)) };
    count
}

#[inline]
pub(super) fn stop() -> u64 {
    let count: u64;
    // SAFETY: as `start`.
    unsafe { asm!("isb", "mrs {0}, cntvct_el0", "isb", out(reg) count, options(nostack)) };
    count
}

#[inline]
pub(super) fn now() -> u64 {
    let count: u64;
    // SAFETY: as `start`.
    unsafe { asm!("mrs {0}, cntvct_el0", out(reg) count, options(nostack, nomem)) };
    count
}
