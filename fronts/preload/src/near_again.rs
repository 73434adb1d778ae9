//! Makes blocks near memory again, on large pages, once there has been room for all of them for a while.
//!
//! ```text
//!   far ──wish──► swapped-out pages are fetched back ──none left──► near, on small pages ──► span by span on large pages
//! ```
//! The policy decides when ([`NearAgain`]); the pager fetches pages back and takes its hands off the heap; the kernel
//! copies the contents of each span to a large page. The helper thread does so, a few spans at a time.

use crate::backing::Far;
use crate::change_over::change_back;
use crate::heap::LargeHeap;
use crate::limit::{Left, Limit};
use crate::limited::LimitedMemory;
use core::ops::Range;
use core::time::Duration;
use largesse_pager::Count;
use largesse_pages::{PageKind, SPAN};
use largesse_policy::{NearAgain, NearWish, Usage};
use std::time::Instant;

/// Number of spans that are made large at once.
const AT_ONCE: usize = 8;
/// Pause after that.
const PAUSE: Duration = Duration::from_millis(20);
/// A span is made large if at least this many bytes of it are resident: the others get memory, too.
const LEAST_RESIDENT: u64 = SPAN as u64 / 8 * 7;

/// Watches for room in the helper thread.
#[derive(Debug, Default)]
pub(crate) struct NearAgainWatch {
    policy: NearAgain,
    /// The part of the heap's range, by offset, whose spans are still to be made large.
    small: Range<usize>,
}

impl NearAgainWatch {
    /// Notes that blocks became far.
    pub(crate) fn became_far(&mut self) {
        self.policy.became_far(Instant::now());
        self.small = 0..0;
    }

    /// Does what the policy wishes, with blocks that are far. Returns whether they became near, after it called `near`
    /// before any other thread could use the heap.
    pub(crate) fn step(
        &mut self,
        limit: &Limit,
        left: Left,
        heap: &LargeHeap,
        (memory, far): (&LimitedMemory, &Far),
        near: impl FnOnce(),
    ) -> bool {
        let now = Instant::now();
        let fetched = match self.policy.wish(usage(far, left), now) {
            NearWish::Stay => {
                far.recall_heap(0);
                false
            }
            NearWish::FetchBack => {
                far.recall_heap(heap.used_range() / SPAN);
                false
            }
            NearWish::BecomeNear => true,
        };
        if !fetched || !change_back(heap, memory, far, limit.heap_limit(heap), near) {
            return false;
        }
        self.policy.became_near(now);
        heap.edit_report(|report| {
            report.near_again += 1;
            report.near_since = largesse_pages::now_seconds().into();
        });
        self.small = if memory.kind() == PageKind::Thp { 0..heap.used_range() } else { 0..0 };
        true
    }

    /// Makes some spans large, with blocks that are near. Returns the longest pause until the next ones.
    pub(crate) fn make_large(
        &mut self,
        limit: &Limit,
        left: Left,
        heap: &LargeHeap,
        memory: &LimitedMemory,
    ) -> Duration {
        let mut room = left.before_reserve / SPAN as u64;
        for _ in 0..AT_ONCE {
            // One large page for the copy, besides the bytes that were not resident.
            if self.small.is_empty() || room < 2 {
                break;
            }
            let span = self.small.start..self.small.start + SPAN;
            self.small.start = span.end;
            let seen = limit.residency(heap, span.clone());
            if seen.large < SPAN as u64 && seen.resident >= LEAST_RESIDENT {
                // Refused if the kernel has no large page: the span stays on small ones.
                let _ = memory.make_large(span.start);
                room -= 1;
            }
        }
        if self.small.is_empty() { Duration::MAX } else { PAUSE }
    }
}

fn usage(far: &Far, left: Left) -> Usage {
    let count = |count| far.pager().counters.get(count);
    Usage {
        missing: count(Count::MappedBytes).saturating_sub(count(Count::ResidentBytes)),
        swapped_out: far.heap_count(Count::StoredBytes),
        free: left.before_reserve,
        reserve: left.reserve,
    }
}
