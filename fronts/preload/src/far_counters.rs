//! Finds the counters of far memory.

use crate::far_store;
use crate::heap::far;
use largesse_pager::{Count, Counters, SegmentWords};
use largesse_report::HeapReport;

/// Returns the counters of far memory, if there is any.
pub(crate) fn all() -> Option<&'static Counters> {
    Some(&far()?.pager().counters)
}

/// Returns the counters of each segment of far memory, if there is any.
pub(crate) fn segments() -> Option<&'static [SegmentWords]> {
    let pager = far()?.pager();
    let used = pager.counters.get(Count::Segments) as usize;
    pager.segments().get(..used)
}

/// Writes to `report`, for readers in other processes, the addresses of the counters and of the description of the
/// store.
pub(crate) fn describe(report: &mut HeapReport) {
    report.far = all().map_or(0, |words| (&raw const *words).addr() as u64);
    report.far_store = far_store::about().map_or(0, |store| (&raw const *store).addr() as u64);
    report.far_segments = segments().map_or(0, |words| words.as_ptr().addr() as u64);
}
