//! Places that are tuned each by itself: the segments of far memory, and parts of them that want another size than the
//! rest.

use super::parts::Part;
use super::trial::{Change, Costs, Trial};
use crate::PageNumber;
use core::ops::Range;

/// Regions at most: each takes time to learn.
const MOST_REGIONS: usize = 32;

/// From one page to the next region's first one.
#[derive(Debug)]
struct Region {
    first: PageNumber,
    /// Its share of the segment that it is in.
    share: f64,
    /// Pages that came lately.
    came: f64,
    trial: Trial,
}

impl Region {
    fn new(first: PageNumber, share: f64, trial: Trial) -> Region {
        Region { first, share, came: 0.0, trial }
    }
}

/// The regions, in the order of their pages; together they are all there is.
#[derive(Debug)]
pub struct Regions {
    all: Vec<Region>,
    /// Pages in a set where nothing came back yet.
    new: usize,
    /// Pages that came lately, and nanoseconds that the program waited for them.
    paid: (f64, f64),
}

impl Regions {
    /// One, with sets of `set` pages.
    #[must_use]
    pub fn new(set: usize) -> Regions {
        let mut all = Vec::with_capacity(MOST_REGIONS);
        all.push(Region::new(0, 1.0, Trial::new(set)));
        Regions { all, new: set, paid: (0.0, 0.0) }
    }

    /// The trial of a page.
    #[must_use]
    pub fn at(&self, page: PageNumber) -> &Trial {
        &self.all[self.place(page)].trial
    }

    /// The size in force where most pages of `within` came lately, the least one there, and the largest.
    #[must_use]
    pub fn sizes(&self, within: &Range<PageNumber>) -> [usize; 3] {
        let regions = &self.all[self.place(within.start)..=self.place(within.end.saturating_sub(1))];
        let main = regions.iter().max_by(|one, other| one.came.total_cmp(&other.came));
        let sets = || regions.iter().map(|region| region.trial.set());
        let main = main.map(|region| region.trial.set());
        [main, sets().min(), sets().max()].map(|set| set.unwrap_or(1))
    }

    /// A fill of `pages` pages at `page` that took `ns`, in the segment `within`; `first` is the size to begin with where
    /// nothing came back before, and a lap that of the segment.
    pub fn filled(
        &mut self,
        (page, pages): (PageNumber, usize),
        within: &Range<PageNumber>,
        ns: u64,
        first: usize,
        costs: Costs,
    ) {
        self.cut(within.end);
        self.cut(within.start);
        self.paid = (self.paid.0 + pages as f64, self.paid.1 + ns as f64);
        let alone = self.all.iter().filter(|region| region.trial.has_begun()).nth(1).is_none();
        let page_ns = (!alone).then(|| self.paid.1 / self.paid.0);
        let place = self.place(page);
        let Region { share, came, trial, .. } = &mut self.all[place];
        *came += pages as f64;
        let faded = *came > costs.lap as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
        let costs = Costs { lap: (costs.lap as f64 * *share) as usize, page_ns, ..costs };
        if !trial.has_begun() {
            trial.begin(first, costs);
        }
        if let Some(Change { set, part: Some(part) }) = trial.filled(page, pages, ns, costs) {
            self.split(place, set, part);
        }
        if faded {
            self.paid = (self.paid.0 / 2.0, self.paid.1 / 2.0);
            self.all.iter_mut().for_each(|region| region.came /= 2.0);
        }
    }

    /// Pages left.
    pub fn left(&mut self, pages: &Range<PageNumber>) {
        let mut first = pages.start;
        while first < pages.end {
            let place = self.place(first);
            let end = self.all.get(place + 1).map_or(pages.end, |next| next.first.min(pages.end));
            self.all[place].trial.left(first..end);
            first = end;
        }
    }

    /// The region of a page.
    fn place(&self, page: PageNumber) -> usize {
        self.all.partition_point(|region| region.first <= page) - 1
    }

    /// A segment starts here.
    fn cut(&mut self, first: PageNumber) {
        let place = self.place(first);
        if self.all[place].first != first && self.all.len() < MOST_REGIONS {
            self.all.insert(place + 1, Region::new(first, 1.0, Trial::new(self.new)));
        }
    }

    /// A part of a region goes its own way, with sets of `set` pages; what lies behind it does as well, from here on.
    fn split(&mut self, place: usize, set: usize, part: Part) {
        if self.all.len() + 2 > MOST_REGIONS {
            return;
        }
        let end = self.all.get(place + 1).map_or(usize::MAX, |next| next.first);
        let whole = &mut self.all[place];
        let (start, share) = (part.pages.start.max(whole.first), whole.share);
        let (own, rest) = (whole.trial.apart(set), whole.trial.apart(whole.trial.set()));
        let behind = share * (1.0 - part.before - part.share);
        whole.share *= part.before;
        if part.pages.end < end {
            self.all.insert(place + 1, Region::new(part.pages.end, behind, rest));
        }
        self.all.insert(place + 1, Region::new(start, share * part.share, own));
        if self.all[place].first == start {
            self.all.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MOST_SET;

    const PAGES: usize = 64 * MOST_SET;
    const COSTS: Costs = Costs {
        evict_ns: 300.0,
        evict_set_ns: 0.0,
        evict_page_ns: 300.0,
        pushed: 0.9,
        page_ns: None,
        lap: PAGES,
    };

    /// A program that goes through its pages so many times, all of them, or where it is `sparse` one of each 64; a fault
    /// takes 10 us and a page 300 ns, give or take a half.
    fn run(laps: usize, sparse: impl Fn(usize) -> bool) -> Regions {
        let mut regions = Regions::new(4);
        let (mut came, mut page, mut random) = (0, 0, 12345_u64);
        while came < laps * PAGES {
            let set = regions.at(page).set_at(page);
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let ns = (11_000 + 300 * set as u64) * (64 + (random >> 58)) / 96;
            regions.filled((page / set * set, set), &(0..PAGES), ns, 4, COSTS);
            came += set;
            page = (if sparse(page) { (page / 64 + 1) * 64 } else { page / set * set + set }) % PAGES;
        }
        regions
    }

    fn sets(regions: &Regions) -> Vec<(usize, usize)> {
        regions.all.iter().filter(|it| it.first < PAGES).map(|it| (it.first, it.trial.set())).collect()
    }

    #[test]
    fn places_that_want_different_sizes_get_them() {
        for (from, to) in [(PAGES / 2, PAGES), (0, PAGES / 4), (PAGES / 4, PAGES / 2)] {
            let regions = run(800, |page| (from..to).contains(&page));
            let at = |page: usize| regions.at(page).set();
            let (inside, outside) = (at((from + to) / 2), at((to + PAGES / 8) % PAGES));
            // A part of a part has few blocks: what it wants exactly is not known.
            assert!(inside <= 16 && outside >= 4 * inside.max(8), "{from}..{to}: {:?}", sets(&regions));
        }
    }

    #[test]
    fn a_program_that_is_the_same_everywhere_has_one_region() {
        for sparse in [false, true] {
            let regions = run(200, |_| sparse);
            assert_eq!(sets(&regions).len(), 1, "{:?}", sets(&regions));
        }
    }

    #[test]
    fn each_segment_is_a_region_of_its_own() {
        let mut regions = Regions::new(4);
        for segment in [1, 0, 2] {
            regions.filled((segment * 1000, 4), &(segment * 1000..segment * 1000 + 1000), 9000, 64, COSTS);
        }
        let first: Vec<_> = regions.all.iter().map(|region| region.first).collect();
        assert_eq!(first, [0, 1000, 2000, 3000]);
        assert_eq!(regions.sizes(&(1000..2000)), [64; 3]);
        assert_eq!(regions.at(3500).set(), 4, "nothing came there yet");
    }

    #[test]
    fn parts_of_parts_stay_in_order_and_are_all_there_is() {
        let mut regions = Regions::new(4);
        let mut random = 1_usize;
        for _ in 0..200 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (place, from, len) =
                ((random >> 33) % regions.all.len(), (random >> 40) % 8, (random >> 50) % 8);
            let (start, len) = (regions.all[place].first, len.clamp(1, 7).min(8 - from));
            let end = regions.all.get(place + 1).map_or(PAGES, |next| next.first);
            if end - start < 8 || len == 8 {
                continue;
            }
            let at = |part: usize| start + (end - start) * part / 8;
            let pages = (if from == 0 { 0 } else { at(from) })..(if from + len == 8 {
                usize::MAX
            } else {
                at(from + len)
            });
            let part = Part { pages, before: from as f64 / 8.0, share: len as f64 / 8.0 };
            regions.split(place, 8, part);
            assert!(regions.all.is_sorted_by_key(|region| region.first) && regions.all[0].first == 0);
            assert!((1..=MOST_REGIONS).contains(&regions.all.len()));
            let shares: f64 = regions.all.iter().map(|region| region.share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        }
        assert!(regions.all.len() > MOST_REGIONS - 2);
    }
}
