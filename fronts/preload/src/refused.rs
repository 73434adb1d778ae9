//! Prints one line on standard error the first time that an option of the user cannot be granted in full.
//!
//! The launcher reports before the program starts what the machine will not grant, and this file does not repeat
//! that.

use crate::guard::Inside;
use crate::heap::{self, LargeHeap};
use crate::notices::{Notice, warn_once};
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_arena::{Backing, Refusal};
use largesse_report::Cause;

/// Causes which mean that an option of the user was not granted.
const ASKED_FOR: [Cause; 9] = [
    Cause::HugetlbPoolEmpty,
    Cause::HugetlbRefused,
    Cause::LockRefused,
    Cause::NodeRefused,
    Cause::ThpNever,
    Cause::ThpDisabledForProcess,
    Cause::ThpRefused,
    Cause::Pages64kNotOffered,
    Cause::Pages64kOvertaken,
];
/// Refusals of the kernel that can happen at any block.
const BY_BLOCK: [Refusal; 4] = [Refusal::PoolEmpty, Refusal::PoolRefused, Refusal::Lock, Refusal::Place];

/// Holds the number of refusals of the kinds in [`BY_BLOCK`] at the last call of [`report_new`].
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Prints the advice for options that were not granted, if the kernel has refused a block something since the last
/// call.
pub(crate) fn report_new(heap: &LargeHeap) {
    let Some(backing) = heap::backing() else { return };
    let now = BY_BLOCK.into_iter().map(|what| backing.refused(what)).sum();
    // Relaxed: a statistic; two threads that count at once set the same bits.
    if COUNTED.swap(now, Ordering::Relaxed) != now {
        report(heap);
    }
}

/// Prints the advice for each option that was not granted, once for each cause.
#[cold]
pub(crate) fn report(heap: &LargeHeap) {
    let _inside = Inside::enter();
    let counts = heap.with_report(|report| report.not_granted);
    for cause in ASKED_FOR.into_iter().filter(|&cause| counts[cause as usize] > 0) {
        warn_once(Notice::NotGranted(cause), cause.advice().to_str().unwrap_or_default());
    }
}
