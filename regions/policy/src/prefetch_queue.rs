//! Queues the pages that streams expect to be touched next, until these pages are filled.

use crate::PageNumber;
use crate::streams::Access;
use core::ops::Range;
use std::collections::VecDeque;

/// Largest number of pages that one fault prefetches, however large local memory is.
const MAX_PREFETCH: usize = 256;

/// Returns the largest number of pages that one fault prefetches, if local memory has `local` pages.
///
/// The pager retains the same number of frames of evicted pages for reuse. With fewer frames, the kernel would free
/// some of them and allocate others for the prefetched pages.
#[must_use]
pub const fn max_prefetch(local: usize) -> usize {
    if local / 16 < MAX_PREFETCH { local / 16 } else { MAX_PREFETCH }
}

/// Pages to prefetch, in the order of their expected use. Each is the page of its transfer unit that is expected to be
/// used first.
#[derive(Debug)]
pub struct PrefetchQueue(VecDeque<(PageNumber, Access)>);

impl Default for PrefetchQueue {
    fn default() -> PrefetchQueue {
        PrefetchQueue::new()
    }
}

impl PrefetchQueue {
    /// Makes an empty queue, with room for the pages that one fault prefetches.
    #[must_use]
    pub fn new() -> PrefetchQueue {
        PrefetchQueue(VecDeque::with_capacity(MAX_PREFETCH))
    }

    /// Removes all pages.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a page, which will be accessed as `access` says.
    pub fn push(&mut self, page: PageNumber, access: Access) {
        self.0.push_back((page, access));
    }

    /// Returns the page that is expected to be used first.
    #[must_use]
    pub fn first(&self) -> Option<(PageNumber, Access)> {
        self.0.front().copied()
    }

    /// Removes and returns the page that is expected to be used first.
    pub fn pop(&mut self) -> Option<(PageNumber, Access)> {
        self.0.pop_front()
    }

    /// Removes pages from the front of the queue while they lie in `pages`, because they are being filled.
    pub fn remove_first(&mut self, pages: &Range<PageNumber>) {
        while self.0.front().is_some_and(|(page, _)| pages.contains(page)) {
            self.0.pop_front();
        }
    }

    /// Extends the transfer of `page` to a coalesced run: finds the first pages whose transfer units follow in memory,
    /// so that one transfer can fill all of them. Returns the end of the last unit. The pages stay in the queue until
    /// they are [removed](PrefetchQueue::remove_first), since the transfer may find no room for all of them.
    ///
    /// `unit_of` returns the transfer unit of a page. The run may contain gaps of fewer than `gap` pages between units.
    /// The run ends before the first unit for which `are_alike` is false, because a transfer only moves pages in the
    /// same state. It ends at most `most` pages after `page`, and at most 256.
    pub fn coalesce(
        &self,
        page: PageNumber,
        access: Access,
        gap: usize,
        most: usize,
        unit_of: impl Fn(PageNumber, Access) -> Range<PageNumber>,
        are_alike: impl Fn(Range<PageNumber>) -> bool,
    ) -> PageNumber {
        // All pages from `page` to `alike` are in the same state. Later pages of the unit of `page` may be in another
        // one.
        let (mut end, mut alike) = (unit_of(page, access).end, page);
        for next in self.0.iter().map(|&(next, access)| unit_of(next, access)) {
            let follows = next.start < end + gap
                && (page + 1..=page + most.min(MAX_PREFETCH)).contains(&next.end)
                && alike <= next.end;
            if !(follows && are_alike(alike..next.end)) {
                break;
            }
            (end, alike) = (end.max(next.end), alike.max(next.end));
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues `pages`, and coalesces the unit of four pages before the first of them with those that follow it without
    /// a gap of `gap` pages or more; the run ends before page 100. Returns the end of the run, and the next page that
    /// remains in the queue.
    fn coalesced(pages: &[usize], gap: usize) -> (usize, Option<usize>) {
        let mut queue = PrefetchQueue::new();
        pages.iter().for_each(|&page| queue.push(page, Access::Dense));
        let unit_of = |page: usize, _| page / 4 * 4..page / 4 * 4 + 4;
        let first = pages[0] - 4;
        let end = queue.coalesce(first, Access::Dense, gap, MAX_PREFETCH, unit_of, |pages| pages.end <= 100);
        queue.remove_first(&(first..end));
        (end, queue.pop().map(|(page, _)| page))
    }

    #[test]
    fn run_ends_at_a_gap() {
        assert_eq!(coalesced(&[8, 12, 20], 4), (16, Some(20)));
        assert_eq!(coalesced(&[8, 12, 20], 5), (24, None));
    }

    #[test]
    fn run_without_room_stays_in_the_queue() {
        let mut queue = PrefetchQueue::new();
        [4, 8, 12, 100, 8].into_iter().for_each(|page| queue.push(page, Access::Dense));
        let unit_of = |page: usize, _| page..page + 4;
        let run =
            |queue: &PrefetchQueue| queue.coalesce(4, Access::Dense, 4, MAX_PREFETCH, unit_of, |_| true);
        assert_eq!((run(&queue), queue.first()), (16, Some((4, Access::Dense))));
        assert_eq!(run(&queue), 16, "the same run is found again");
        queue.remove_first(&(4..8)); // there was room for one unit
        assert_eq!(queue.first(), Some((8, Access::Dense)));
        queue.remove_first(&(8..16));
        let rest: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|(page, _)| page).collect();
        assert_eq!(rest, [100, 8], "only the first pages of the queue are removed");
    }

    #[test]
    fn run_ends_at_another_state() {
        assert_eq!(coalesced(&[92, 96, 100], 4), (100, Some(100)));
    }

    #[test]
    fn run_ends_at_the_limit_or_a_step_back() {
        let all: Vec<usize> = (1000..2000).step_by(4).collect();
        let mut queue = PrefetchQueue::new();
        all.iter().for_each(|&page| queue.push(page, Access::Dense));
        let unit_of = |page: usize, _| page..page + 4;
        assert_eq!(
            queue.coalesce(996, Access::Dense, 4, MAX_PREFETCH, unit_of, |_| true),
            996 + MAX_PREFETCH
        );
        assert_eq!(coalesced(&[12, 4], 4), (16, Some(4)));
    }
}
