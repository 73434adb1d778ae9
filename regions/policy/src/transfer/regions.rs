//! Divides far memory into regions, each with a transfer size of its own: the segments, and parts of segments that need
//! another size than the rest. Each region has a size for each kind of access, because the same memory may be scanned
//! in one phase of the program, which needs large units, and accessed by strided streams in the next, which need small
//! ones.

use super::dueling::{Costs, SetDuel, SizeChange};
use super::parts::RegionPart;
use crate::PageNumber;
use crate::streams::Access;
use core::ops::Range;

/// Largest number of regions. It is bounded because tuning each of them takes time.
const MAX_REGIONS: usize = 32;

/// The duel of sizes for one kind of access, and its recent use.
#[derive(Debug)]
struct Tuned {
    /// Number of pages that were recently filled for this kind of access.
    filled_recently: f64,
    duel: SetDuel,
}

/// A range of pages with transfer sizes of its own: from `first` to the start of the next region.
#[derive(Debug)]
struct Region {
    first: PageNumber,
    /// Share of the segment's pages that the region has.
    share: f64,
    /// The duels, by [`Access`].
    tuned: [Tuned; 2],
}

impl Region {
    fn new(first: PageNumber, share: f64, duel: impl Fn(Access) -> SetDuel) -> Region {
        Region {
            first,
            share,
            tuned: Access::ALL.map(|access| Tuned { filled_recently: 0.0, duel: duel(access) }),
        }
    }
}

fn duel_for(access: Access, unit: usize) -> SetDuel {
    match access {
        Access::Dense => SetDuel::new(unit),
        Access::Strided => SetDuel::new(unit).with_whole_epochs(),
    }
}

/// The regions, in the order of their pages; together they cover all of far memory.
#[derive(Debug)]
pub struct Regions {
    all: Vec<Region>,
    /// Size in pages of the units of new regions, until a page refaults.
    new: usize,
    /// Number of recently filled pages, and the nanoseconds for which the program waited for them.
    waited: (f64, f64),
}

impl Regions {
    /// Makes a single region, with units of `unit` pages.
    #[must_use]
    pub fn new(unit: usize) -> Regions {
        let mut all = Vec::with_capacity(MAX_REGIONS);
        all.push(Region::new(0, 1.0, |access| duel_for(access, unit)));
        Regions { all, new: unit, waited: (0.0, 0.0) }
    }

    /// Returns the duel of the region of a page for one kind of access.
    #[must_use]
    pub fn at(&self, page: PageNumber, access: Access) -> &SetDuel {
        &self.all[self.place(page)].tuned[access as usize].duel
    }

    /// Returns three sizes of transfer units in the pages `within`: the size of the region and kind of access with the
    /// most recent fills, the smallest size, and the largest.
    #[must_use]
    pub fn sizes(&self, within: &Range<PageNumber>) -> [usize; 3] {
        let regions = &self.all[self.place(within.start)..=self.place(within.end.saturating_sub(1))];
        let all = || regions.iter().flat_map(|region| &region.tuned);
        let main = all()
            .max_by(|one, other| one.filled_recently.total_cmp(&other.filled_recently))
            .map(|it| it.duel.unit());
        let begun = || all().filter(|it| it.duel.has_begun()).map(|it| it.duel.unit());
        [main, begun().min().or(main), begun().max().or(main)].map(|unit| unit.unwrap_or(1))
    }

    /// Records a fill of `pages` pages from `page` on for one kind of access, which took `ns` nanoseconds. The pages of
    /// the segment are `within`, and `costs` has the epoch of the whole segment. A region without earlier refaults
    /// begins with units of `first` pages.
    pub fn filled(
        &mut self,
        (page, pages): (PageNumber, usize),
        access: Access,
        within: &Range<PageNumber>,
        ns: u64,
        first: usize,
        costs: Costs,
    ) {
        self.cut(within.end);
        self.cut(within.start);
        self.waited = (self.waited.0 + pages as f64, self.waited.1 + ns as f64);
        let is_only = self.tuned().filter(|it| it.duel.has_begun()).nth(1).is_none();
        let page_ns = (!is_only).then(|| self.waited.1 / self.waited.0);
        let place = self.place(page);
        let [_, strided] = &mut self.all[place].tuned;
        if access == Access::Dense {
            strided.duel.filled_otherwise(page, pages, ns);
        }
        let Region { share, tuned, .. } = &mut self.all[place];
        let Tuned { filled_recently, duel } = &mut tuned[access as usize];
        *filled_recently += pages as f64;
        let faded = *filled_recently > costs.epoch_pages as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
        let costs = Costs { epoch_pages: (costs.epoch_pages as f64 * *share) as usize, page_ns, ..costs };
        if !duel.has_begun() {
            duel.begin(first, costs);
        }
        if let Some(SizeChange { unit, part: Some(part) }) = duel.filled(page, pages, ns, costs) {
            self.split(place, access, unit, part);
        }
        if faded {
            self.waited = (self.waited.0 / 2.0, self.waited.1 / 2.0);
            self.all.iter_mut().flat_map(|region| &mut region.tuned).for_each(|it| it.filled_recently /= 2.0);
        }
    }

    /// Records the eviction of pages that were last filled for this kind of access.
    pub fn evicted(&mut self, pages: &Range<PageNumber>, access: Access) {
        let mut first = pages.start;
        while first < pages.end {
            let place = self.place(first);
            let end = self.all.get(place + 1).map_or(pages.end, |next| next.first.min(pages.end));
            let [dense, strided] = &mut self.all[place].tuned;
            if access == Access::Dense {
                dense.duel.evicted(first..end);
            }
            strided.duel.evicted(first..end);
            first = end;
        }
    }

    fn tuned(&self) -> impl Iterator<Item = &Tuned> {
        self.all.iter().flat_map(|region| &region.tuned)
    }

    /// Returns the index of the region that contains a page.
    fn place(&self, page: PageNumber) -> usize {
        self.all.partition_point(|region| region.first <= page) - 1
    }

    /// Starts a new region at `first`, the first page of a segment.
    fn cut(&mut self, first: PageNumber) {
        let place = self.place(first);
        if self.all[place].first != first && self.all.len() < MAX_REGIONS {
            let new = self.new;
            self.all.insert(place + 1, Region::new(first, 1.0, |access| duel_for(access, new)));
        }
    }

    /// Splits off a part of the region with index `place`, with units of `unit` pages for one kind of access. The pages
    /// after the part become another region.
    fn split(&mut self, place: usize, access: Access, unit: usize, part: RegionPart) {
        if self.all.len() + 2 > MAX_REGIONS {
            return;
        }
        let end = self.all.get(place + 1).map_or(usize::MAX, |next| next.first);
        let whole = &mut self.all[place];
        let (start, share) = (part.pages.start.max(whole.first), whole.share);
        let behind = share * (1.0 - part.before - part.share);
        let duel = |access: Access| &whole.tuned[access as usize].duel;
        let set_of = |of: Access| if of == access { unit } else { duel(of).unit() };
        let own = Region::new(start, share * part.share, |access| duel(access).split_off(set_of(access)));
        let rest = |first| Region::new(first, behind, |access| duel(access).split_off(duel(access).unit()));
        let rest = (part.pages.end < end).then(|| rest(part.pages.end));
        whole.share *= part.before;
        let after = [Some(own), rest].into_iter().flatten();
        self.all.splice(place + 1..place + 1, after);
        if self.all[place].first == start {
            self.all.remove(place);
        }
    }
}

#[cfg(test)]
mod tests;
