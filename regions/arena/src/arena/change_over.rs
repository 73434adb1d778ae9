//! The arena's part of a change-over: hands its memory to a backing that makes it far memory in place.

use super::Arena;
use crate::retention::Retention;
use crate::{Backing, SpanKind};
use core::ops::Range;

impl<B: Backing> Arena<B> {
    /// Returns the runs of spans that may have contents: those of extents in use, and free spans that are still warm.
    pub fn warm_runs(&self) -> impl Iterator<Item = Range<usize>> {
        let end = self.spans.top();
        let mut at = 0;
        core::iter::from_fn(move || {
            let first = (at..end).find(|&span| self.spans.get(span).warm)?;
            at = (first..end).find(|&span| !self.spans.get(span).warm).unwrap_or(end);
            Some(first..at)
        })
    }

    /// Notes that the backing has made the arena's memory far memory. Warm spans are on small pages from now on, and
    /// all others are only reserved. The arena retains as much free memory as `retention` says, and has no limit any
    /// more.
    pub fn became_far(&mut self, retention: Retention) {
        for span in 0..self.spans.top() {
            let kind = if self.spans.get(span).warm { SpanKind::Small } else { SpanKind::Reserved };
            self.spans.set_kind(span..span + 1, kind);
        }
        (self.retention, self.limit) = (retention, usize::MAX);
    }

    /// Notes that the backing has made its memory near again. Warm spans are on pages of `kind` from now on. The arena
    /// retains as much free memory as `retention` says, and at most `limit` bytes may be warm.
    pub fn became_near(&mut self, retention: Retention, limit: usize, kind: SpanKind) {
        for span in 0..self.spans.top() {
            if self.spans.get(span).warm {
                self.spans.set_kind(span..span + 1, kind);
            }
        }
        (self.retention, self.limit) = (retention, limit);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::{NearMemory, PER_SPAN, Prefer, Request};
    use largesse_pages::{PageKind, Placement, Reserved, SPAN};

    #[test]
    fn only_warm_spans_stay_committed() {
        let range = Reserved::new(16 * SPAN, SPAN).unwrap();
        let near = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
        let mut arena = Arena::new(near, Retention::default()).unwrap();
        let mut take = |spans: usize| {
            let granules = u32::try_from(spans * PER_SPAN).unwrap();
            arena.take(Request { granules, align: 1, phase: 0, prefer: Prefer::Warm }, 0).unwrap().at
        };
        let (_, middle, last) = (take(2), take(3), take(4));
        arena.give_back(middle, false, 0);
        assert_eq!(arena.trim(0), 3 * SPAN);
        arena.set_limit(5 * SPAN);
        assert!(arena.exceeds_limit(), "six spans are warm");
        assert_eq!(arena.warm_runs().collect::<std::vec::Vec<_>>(), [0..2, 5..9]);
        arena.became_far(Retention { share: 0, floor: 0 });
        assert!(!arena.exceeds_limit());
        assert_eq!(arena.kinds(last).next(), Some((4, SpanKind::Small)));
        assert_eq!(arena.first_run_of(SpanKind::Reserved), Some((2, 3)));
        arena.give_back(last, false, 0);
        assert_eq!(arena.trim(0), 4 * SPAN, "the backing drops the free spans");
        arena.became_near(Retention::default(), SPAN, SpanKind::Thp);
        assert!(arena.exceeds_limit(), "two spans are warm");
        assert_eq!(arena.first_run_of(SpanKind::Thp), Some((0, 2)));
    }
}
