//! Decides which pages are filled together: transfer units, runs of several units, and predicted units.

use crate::page::{PageState, Touch, run_around};
use crate::state::PagerState;
use core::ops::Range;
use largesse_arena::Reads;
use largesse_policy::streams::{Access, FaultContext};
use largesse_policy::transfer::TransferUnits;
use largesse_policy::{MAX_TRANSFER, PageNumber};
use largesse_policy::{PrefetchQueue, max_prefetch};

/// Largest number of pages that one fault prefetches from a store whose transfers take time.
const MOST_IN_FLIGHT: usize = 512;

impl PagerState {
    /// Returns the transfer size at `page` in pages, at most an eighth of local memory. For a new page it is the size
    /// in force in its surroundings, even in a leader block that tries another size.
    pub(crate) fn unit_at(&self, page: PageNumber, access: Access) -> usize {
        let new = self.pages[page].state == PageState::Zero;
        let set = if new { self.units.in_force(page, Access::Dense) } else { self.units.at(page, access) };
        set.min(self.largest_unit())
    }

    /// Returns the largest number of pages that one fault prefetches. It is larger for stores whose transfers take
    /// time, so that more of them are in flight.
    fn most_prefetched(&self) -> usize {
        match self.asynchronous {
            true => (self.local / 8).min(MOST_IN_FLIGHT),
            false => max_prefetch(self.local),
        }
    }

    /// Returns the size in pages of the largest transfer unit: the largest power of two that is at most an eighth of
    /// local memory, if asynchronous reads have memory for it. While the program reads changed pages only, it is one
    /// page: the neighbours of such a page are mostly pages that it does not read.
    fn largest_unit(&self) -> usize {
        if self.only_read == Some(Reads::Changed) {
            return 1;
        }
        (1 << (self.local / 8).max(1).ilog2()).min(self.largest_async)
    }

    /// Returns the pages of the transfer unit of a page.
    pub(crate) fn unit_of(&self, page: PageNumber, access: Access) -> Range<PageNumber> {
        let set = self.unit_at(page, access);
        let first = page / set * set;
        first..first + set
    }

    /// Returns the new pages to fill along with `page`: its transfer unit, or more while much of local memory is free
    /// or all mapped pages fit. New pages need no transfer, and are evicted without a write if the program does not use
    /// them.
    fn zero_fill_range(&self, page: PageNumber) -> Range<PageNumber> {
        let room = self.local.saturating_sub(self.occupied());
        let all_fit = (1..=self.local + self.local / 64).contains(&self.mapped);
        let at_once = if all_fit { room } else { room / 8 };
        let step = match self.units {
            TransferUnits::Auto(_) if all_fit || room > self.local / 8 => {
                self.unit_at(page, Access::Dense).max(1 << at_once.max(1).ilog2()).min(MAX_TRANSFER)
            }
            _ => self.unit_at(page, Access::Dense),
        };
        let first = page / step * step;
        first..first + step
    }

    /// Returns the pages to fill along with `page`: those around it that are in the same state, within its transfer
    /// unit, or before the page `upto` if the unit ends earlier.
    pub(crate) fn fill_range(
        &self,
        page: PageNumber,
        access: Access,
        upto: PageNumber,
        bounds: &Range<PageNumber>,
    ) -> Range<PageNumber> {
        let state = self.pages[page].state;
        let set =
            if state == PageState::Zero { self.zero_fill_range(page) } else { self.unit_of(page, access) };
        // A read never exceeds the memory of reads.
        let most = match state {
            PageState::Zero => MAX_TRANSFER,
            _ => MAX_TRANSFER.min(self.largest_async + self.largest_async / 2),
        };
        let end = set.end.max(upto).min(set.start + most);
        let within = set.start.max(bounds.start)..end.min(bounds.end);
        run_around(page, within, |other| self.pages[other].state == state)
    }

    /// Finds predicted units that directly follow the unit of `page` and are in the same state, so that one transfer
    /// fills all of them: at most `most` pages after `page`, within the bound of [`PrefetchQueue::coalesce`]. Returns
    /// the end of the last unit.
    pub(crate) fn coalesce(
        &self,
        page: PageNumber,
        access: Access,
        most: usize,
        prefetch_queue: &PrefetchQueue,
    ) -> PageNumber {
        let state = self.pages[page].state;
        // A gap is none that a unit in force would fill: leader blocks have smaller units here and there, and larger
        // ones.
        let gap = self.units.in_force(page, access).min(self.largest_unit());
        let are_alike = |pages: Range<PageNumber>| {
            self.pages.get(pages).is_some_and(|pages| pages.iter().all(|page| page.state == state))
        };
        prefetch_queue.coalesce(page, access, gap, most, |page, access| self.unit_of(page, access), are_alike)
    }

    /// Cuts a range of pages into its transfer units.
    pub(crate) fn units_in(&self, pages: &Range<PageNumber>, access: Access) -> Vec<Range<PageNumber>> {
        let mut units = Vec::with_capacity(1);
        let mut first = pages.start;
        while first < pages.end {
            let end = self.unit_of(first, access).end.min(pages.end);
            units.push(first..end);
            first = end;
        }
        units
    }

    /// Reports a fault to the streams, and adds the pages that they predict to `prefetch_queue`. Returns how the
    /// streams classify the fault, and the number of prefetched pages that the program is now known to have used.
    pub(crate) fn observe_fault(
        &mut self,
        touch: Touch,
        bounds: &Range<PageNumber>,
        prefetch_queue: &mut PrefetchQueue,
    ) -> (Access, usize) {
        let Touch { page, .. } = touch;
        // The size in force, also in leader blocks of another size: a stream goes on through both.
        let in_force = |access| self.units.in_force(page, access).min(self.largest_unit());
        let units = Access::ALL.map(in_force);
        let here = |page: PageNumber| self.pages[page].state.is_resident();
        let fault = FaultContext::new(page, units, bounds, here);
        let most = self.most_prefetched();
        let (largest, pages, units) = (self.largest_unit(), &mut self.pages, &self.units);
        let (mut hits, sets_in_force) = (0, fault.units);
        let mut passed = |passed: Range<PageNumber>, access: Access| {
            let set = sets_in_force[access as usize];
            let first = (passed.start / set * set).max(bounds.start);
            for page in first..(first + set).max(passed.end).min(bounds.end) {
                hits += usize::from(pages.take_prefetched(page));
            }
        };
        let mut predicted = |pages: Range<PageNumber>, access: Access| {
            // A leader block of half the size has two units for each one in force.
            let mut page = pages.start;
            while page < pages.end.min(bounds.end) {
                if page >= bounds.start {
                    prefetch_queue.push(page, access);
                }
                let unit = units.at(page, access).min(largest);
                page = (page / unit + 1) * unit;
            }
        };
        let access = self.prefetch.on_fault(&fault, most, &mut passed, &mut predicted);
        (access, hits)
    }
}
