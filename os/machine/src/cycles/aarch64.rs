//! The virtual counter, which the architecture has run at one rate for every core.
//!
//! `isb` keeps what is before it from what is after it; `dsb` has memory accesses done first.

use super::Source;
use super::judge::Facts;
use core::arch::asm;

pub(super) const SOURCE: Source = Source::VirtualCounter;

pub(super) fn facts() -> Facts {
    Facts { known: true, invariant: true, clock_source: Some("arch_sys_counter"), forbidden: false }
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
