//! Counts requests that were granted less than they asked for, by cause.

use crate::guard::Inside;
use crate::heap::{LargeHeap, heap};
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_report::{CAUSES, Cause};

/// Number of times that each cause occurred while there was no heap or its lock could not be taken.
static EARLY_CAUSES: [AtomicU64; CAUSES] = [const { AtomicU64::new(0) }; CAUSES];

/// Counts a request that was granted less than it asked for.
pub(crate) fn note(cause: Cause) {
    match heap() {
        Some(heap) if !heap.is_interrupted() => {
            let _inside = Inside::enter_heap();
            heap.note(cause);
        }
        // Relaxed: a statistic.
        _ => _ = EARLY_CAUSES[cause as usize].fetch_add(1, Ordering::Relaxed),
    }
}

/// Returns the number of times that each cause occurred, with and without a heap.
pub(crate) fn not_granted() -> [u64; CAUSES] {
    let _inside = Inside::enter();
    let mut counts = heap().map_or([0; CAUSES], |heap| heap.with_report(|report| report.not_granted));
    for (count, early) in counts.iter_mut().zip(&EARLY_CAUSES) {
        *count += early.load(Ordering::Relaxed);
    }
    counts
}

/// Adds causes that occurred without a heap to the heap's report, the only place where `largesse status` reads them.
pub(crate) fn count_early(heap: &LargeHeap) {
    for (cause, early) in Cause::ALL.into_iter().zip(&EARLY_CAUSES) {
        (0..early.swap(0, Ordering::Relaxed)).for_each(|_| heap.note(cause));
    }
}
