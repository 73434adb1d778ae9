//! Publishes a signpost by which `largesse status` finds the heap, and starts the helper thread.

use crate::causes::note;
use crate::heap::LargeHeap;
use crate::hooked::way_in;
use crate::routing::ROUTING;
use crate::settings::options;
use crate::{far_counters, helper};
use largesse_pages::Placement;
use largesse_report::{Cause, MEMFD_NAME, PageChoice, Signpost};

/// Lets `largesse status` find the heap, and starts the helper thread.
pub(crate) fn publish(heap: &LargeHeap) {
    let options = options();
    let (min, max, enabled) = ROUTING.limits();
    heap.edit_report(|report| {
        report.pages = options.pages as u32;
        report.locked = u32::from(options.lock);
        report.patched = way_in();
        report.node = match options.placement {
            Placement::FirstTouch => -1,
            Placement::Interleave => -2,
            Placement::Node(node) => i32::try_from(node).unwrap_or(i32::MAX),
        };
        report.min_bytes = min as u64;
        report.max_bytes = max as u64;
        report.enabled = u32::from(enabled);
        far_counters::describe(report);
    });
    let signpost = Signpost::to(heap.report_address() as u64);
    // SAFETY: the structure has no padding, so all of its bytes are initialised.
    let bytes =
        unsafe { core::slice::from_raw_parts((&raw const signpost).cast::<u8>(), size_of::<Signpost>()) };
    if largesse_pages::publish(MEMFD_NAME, bytes).is_err() {
        note(Cause::SignpostRefused);
    }
    // Pages of the hugetlb pool are taken when they are committed; other programs may need those prepared too early.
    let ahead = options.ahead && !matches!(options.pages, PageChoice::Hugetlb | PageChoice::Hugetlb1G);
    let far = far_counters::all().is_some();
    if ahead || far || options.limit.is_some() {
        helper::start(ahead && !far);
    }
}
