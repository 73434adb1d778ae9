//! The steps of paging in, as types: the request, the answer to it, and the pages that are in flight.
//!
//! ```text
//!   plan ───► admit ──room──► begin_fill ───► transfer, outside the lock ───► commit
//!               │                Filling                                    Clean or Dirty
//!               └── no room: the caller evicts, and asks again
//! ```
//! `admit.rs` plans and admits, `commit.rs` commits. The transfer in between is made by the caller: at once
//! (`page_in.rs`), or while it serves other faults (`async_fill.rs`).

use crate::page::{PageState, Touch};
use core::ops::Range;
use largesse_policy::PageNumber;
use largesse_policy::replacement::Protection;
use largesse_policy::streams::Access;

/// A request to page in the transfer unit of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FillRequest {
    pub(crate) touch: Touch,
    pub(crate) access: Access,
    /// End of the pages to page in, which is not paged in itself: units in the same state that follow that of the page
    /// are included up to here. It is 0 for the unit of the page alone.
    pub(crate) upto: PageNumber,
    pub(crate) reason: FillReason,
    pub(crate) frames: FrameSource,
}

/// Why pages are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FillReason {
    /// A thread waits for one of them.
    Fault,
    /// A stream predicts their use.
    Prefetch,
    /// All pages fit in local memory again: those that are not resident are fetched before far memory becomes near.
    Recall,
}

/// Which frames (physical pages) the pages get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSource {
    /// The kernel allocates them, and can protect them against writing.
    Allocated,
    /// Frames of evicted pages, if there are enough, otherwise allocated ones. A page whose frame is moved into place
    /// cannot be write-protected in the same step.
    Evicted,
}

/// The pages to fill, and how to fill each of them.
#[derive(Debug)]
pub(crate) struct FillPlan {
    pub(crate) range: Range<PageNumber>,
    /// The state of all pages of the range: `Zero` or `SwappedOut`.
    pub(crate) from: PageState,
    pub(crate) pages: Vec<PagePlan>,
    /// The transfer units that make up `range`.
    pub(crate) units: Vec<Range<PageNumber>>,
    /// How each unit was last evicted: from which part of the replacement queue, and the value of the eviction clock at
    /// that time. `None` if the unit was never evicted.
    pub(crate) evictions: Vec<Option<(Protection, u32)>>,
}

impl FillPlan {
    /// Returns whether the program may write to all pages without another fault.
    pub(crate) fn is_writable(&self) -> bool {
        self.pages.iter().all(|page| page.dirty)
    }
}

/// How one page is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PagePlan {
    /// Checksum of the page's contents in the store.
    pub(crate) sum: u64,
    /// Whether the program may write to the page without another fault.
    pub(crate) dirty: bool,
}

/// Pages that are `Filling`, with the data that the end of their transfer needs.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) touch: Touch,
    pub(crate) access: Access,
    pub(crate) plan: FillPlan,
}

/// The answer to a [`FillRequest`].
#[derive(Debug)]
pub(crate) enum Admission {
    /// The page is resident, or the program mapped something else there. The threads that wait for it can be woken.
    Resident,
    /// Another thread fills or evicts the page, and wakes the threads that wait for it at the end.
    InFlight,
    /// The pages were made `Filling`: the caller transfers them.
    Begun(Incoming),
    /// Local memory has no room for the fill, which needs this number of pages.
    NoRoom(usize),
}
