//! Places that are tuned each by itself: the segments of far memory, and parts of them that want another size than the
//! rest; and in each the ways in which pages are used: rows at a distance want small sets where a walk through all wants large
//! ones, in one phase of a program and the next.

use super::dueling::{Change, Costs, Trial};
use super::parts::Part;
use crate::PageNumber;
use crate::streams::Access;
use core::ops::Range;

/// Regions at most: each takes time to learn.
const MOST_REGIONS: usize = 32;

/// What is tried for one kind of access.
#[derive(Debug)]
struct Tuned {
    /// Pages that came lately.
    came: f64,
    trial: Trial,
}

/// From one page to the next region's first one.
#[derive(Debug)]
struct Region {
    first: PageNumber,
    /// Its share of the segment that it is in.
    share: f64,
    /// By [`Access`].
    tuned: [Tuned; 2],
}

impl Region {
    fn new(first: PageNumber, share: f64, trial: impl Fn(Access) -> Trial) -> Region {
        Region { first, share, tuned: Access::ALL.map(|access| Tuned { came: 0.0, trial: trial(access) }) }
    }
}

fn trial_for(access: Access, set: usize) -> Trial {
    match access {
        Access::Dense => Trial::new(set),
        Access::Strided => Trial::new(set).patient(),
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
        all.push(Region::new(0, 1.0, |access| trial_for(access, set)));
        Regions { all, new: set, paid: (0.0, 0.0) }
    }

    /// The trial of a page that is used in some way.
    #[must_use]
    pub fn at(&self, page: PageNumber, access: Access) -> &Trial {
        &self.all[self.place(page)].tuned[access as usize].trial
    }

    /// The size in force where most pages of `within` came lately, the least one there, and the largest.
    #[must_use]
    pub fn sizes(&self, within: &Range<PageNumber>) -> [usize; 3] {
        let regions = &self.all[self.place(within.start)..=self.place(within.end.saturating_sub(1))];
        let all = || regions.iter().flat_map(|region| &region.tuned);
        let main = all().max_by(|one, other| one.came.total_cmp(&other.came)).map(|it| it.trial.set());
        let begun = || all().filter(|it| it.trial.has_begun()).map(|it| it.trial.set());
        [main, begun().min().or(main), begun().max().or(main)].map(|set| set.unwrap_or(1))
    }

    /// A fill of `pages` pages at `page`, used in some way, that took `ns`, in the segment `within`; `first` is the size to begin
    /// with where nothing came back before, and a lap that of the segment.
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
        self.paid = (self.paid.0 + pages as f64, self.paid.1 + ns as f64);
        let alone = self.tuned().filter(|it| it.trial.has_begun()).nth(1).is_none();
        let page_ns = (!alone).then(|| self.paid.1 / self.paid.0);
        let place = self.place(page);
        let [_, strided] = &mut self.all[place].tuned;
        if access == Access::Dense {
            strided.trial.filled_beside(page, pages, ns);
        }
        let Region { share, tuned, .. } = &mut self.all[place];
        let Tuned { came, trial } = &mut tuned[access as usize];
        *came += pages as f64;
        let faded = *came > costs.lap as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "pages, at least 0")]
        let costs = Costs { lap: (costs.lap as f64 * *share) as usize, page_ns, ..costs };
        if !trial.has_begun() {
            trial.begin(first, costs);
        }
        if let Some(Change { set, part: Some(part) }) = trial.filled(page, pages, ns, costs) {
            self.split(place, access, set, part);
        }
        if faded {
            self.paid = (self.paid.0 / 2.0, self.paid.1 / 2.0);
            self.all.iter_mut().flat_map(|region| &mut region.tuned).for_each(|it| it.came /= 2.0);
        }
    }

    /// Pages left that came to be used in some way.
    pub fn left(&mut self, pages: &Range<PageNumber>, access: Access) {
        let mut first = pages.start;
        while first < pages.end {
            let place = self.place(first);
            let end = self.all.get(place + 1).map_or(pages.end, |next| next.first.min(pages.end));
            let [dense, strided] = &mut self.all[place].tuned;
            if access == Access::Dense {
                dense.trial.left(first..end);
            }
            strided.trial.left(first..end);
            first = end;
        }
    }

    fn tuned(&self) -> impl Iterator<Item = &Tuned> {
        self.all.iter().flat_map(|region| &region.tuned)
    }

    /// The region of a page.
    fn place(&self, page: PageNumber) -> usize {
        self.all.partition_point(|region| region.first <= page) - 1
    }

    /// A segment starts here.
    fn cut(&mut self, first: PageNumber) {
        let place = self.place(first);
        if self.all[place].first != first && self.all.len() < MOST_REGIONS {
            let new = self.new;
            self.all.insert(place + 1, Region::new(first, 1.0, |access| trial_for(access, new)));
        }
    }

    /// A part of a region goes its own way, with sets of `set` pages for what is used in some way; what lies behind it does as
    /// well, from here on.
    fn split(&mut self, place: usize, access: Access, set: usize, part: Part) {
        if self.all.len() + 2 > MOST_REGIONS {
            return;
        }
        let end = self.all.get(place + 1).map_or(usize::MAX, |next| next.first);
        let whole = &mut self.all[place];
        let (start, share) = (part.pages.start.max(whole.first), whole.share);
        let behind = share * (1.0 - part.before - part.share);
        let trial = |access: Access| &whole.tuned[access as usize].trial;
        let set_of = |of: Access| if of == access { set } else { trial(of).set() };
        let own = Region::new(start, share * part.share, |access| trial(access).apart(set_of(access)));
        let rest = |first| Region::new(first, behind, |access| trial(access).apart(trial(access).set()));
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
