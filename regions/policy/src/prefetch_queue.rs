//! Queues the pages that streams expect to be touched next, until they are filled.

use crate::PageNumber;
use crate::streams::Access;
use core::ops::Range;
use std::collections::VecDeque;

/// Largest number of pages that one fault prefetches.
const MAX_PREFETCH: usize = 256;

/// Returns the largest number of pages that one fault prefetches with `local` pages of local memory.
///
/// The pager retains the same number of frames of evicted pages for reuse. With fewer frames, the kernel would free
/// some of them and allocate others for the prefetched pages.
#[must_use]
pub const fn max_prefetch(local: usize) -> usize {
    if local / 16 < MAX_PREFETCH { local / 16 } else { MAX_PREFETCH }
}

/// Pages to prefetch, each the first one to be used of its transfer unit, in the order of their expected use.
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

    /// Puts a page back that was removed from the front.
    pub fn put_back(&mut self, page: PageNumber, access: Access) {
        self.0.push_front((page, access));
    }

    /// Removes and returns the page that is expected to be used first.
    pub fn pop(&mut self) -> Option<(PageNumber, Access)> {
        self.0.pop_front()
    }

    /// Extends the transfer of `page` to a coalesced run: removes the pages whose transfer units follow in memory, so
    /// that one transfer can fill all of them. Returns the end of the last unit.
    ///
    /// `unit_of` returns the transfer unit of a page. The run may contain gaps of fewer than `gap` pages between units.
    /// It ends before the first unit for which `are_alike` is false, because a transfer only moves pages in the same
    /// state, and has at most `most` pages after `page`.
    pub fn coalesce(
        &mut self,
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
        while let Some(next) = self.0.front().map(|&(next, access)| unit_of(next, access))
            && next.start < end + gap
            && (page + 1..=page + most.min(MAX_PREFETCH)).contains(&next.end)
            && alike <= next.end
            && are_alike(alike..next.end)
        {
            (end, alike) = (end.max(next.end), alike.max(next.end));
            self.0.pop_front();
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of four pages, of which those from page 100 on are in another state.
    fn coalesced(pages: &[usize], gap: usize) -> (usize, Option<usize>) {
        let mut queue = PrefetchQueue::new();
        pages.iter().for_each(|&page| queue.push(page, Access::Dense));
        let unit_of = |page: usize, _| page / 4 * 4..page / 4 * 4 + 4;
        let end =
            queue.coalesce(pages[0] - 4, Access::Dense, gap, MAX_PREFETCH, unit_of, |pages| pages.end <= 100);
        (end, queue.pop().map(|(page, _)| page))
    }

    #[test]
    fn run_ends_at_a_gap() {
        assert_eq!(coalesced(&[8, 12, 20], 4), (16, Some(20)));
        assert_eq!(coalesced(&[8, 12, 20], 5), (24, None));
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
        assert_eq!(coalesced(&[8, 4], 4), (12, Some(4)));
    }
}
