//! Finds the counters of far memory.

use crate::heap::far;
use largesse_pager::{Count, Counters, SegmentWords};

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
