//! Reads the time stamp counter of x86-64.
//!
//! `lfence` waits for earlier instructions and holds back later ones (on AMD, as Linux configures it); `mfence` makes
//! earlier stores visible first; `rdtscp` itself waits for earlier instructions.

use super::CounterSource;
use super::judge::CounterFacts;
use core::arch::asm;
use core::arch::x86_64::{__cpuid, _rdtsc};

pub(super) const SOURCE: CounterSource = CounterSource::Tsc;

pub(super) fn facts() -> CounterFacts {
    const INVARIANT: u32 = 1 << 8;
    const RDTSCP: u32 = 1 << 27;
    let most = __cpuid(0x8000_0000).eax;
    let promised = most >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT != 0;
    let readable = most >= 0x8000_0001 && __cpuid(0x8000_0001).edx & RDTSCP != 0;
    CounterFacts {
        known: true,
        invariant: promised && readable,
        clock_source: Some("tsc"),
        forbidden: forbidden(),
    }
}

/// Returns whether reading the counter is forbidden to this process (`prctl(PR_SET_TSC, PR_TSC_SIGSEGV)`).
fn forbidden() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int.
    let rc = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    rc == 0 && mode == libc::PR_TSC_SIGSEGV
}

#[inline]
pub(super) fn start() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: reads a counter that `facts` found readable; no memory is accessed (but not `nomem`, so that the compiler
    // moves no access across).
    unsafe {
        asm!("mfence", "lfence", "rdtsc", "lfence", out("rax") low, out("rdx") high, options(nostack));
    }
    high << 32 | low
}

#[inline]
pub(super) fn stop() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as `start`; the instruction writes `rcx`.
    unsafe {
        asm!("rdtscp", "lfence", out("rax") low, out("rdx") high, out("rcx") _, options(nostack));
    }
    high << 32 | low
}

#[inline]
pub(super) fn now() -> u64 {
    // SAFETY: reads a counter that `facts` found readable.
    unsafe { _rdtsc() }
}
