//! Sizes tried beside each other: in space, not in time.
//!
//! A program without annotation gives no measure of progress, so that times at one size and at
//! another later cannot be compared. But a program treats most of its blocks alike. So a few blocks
//! of some sets each, chosen by their number, use sets of half the size, a few others of twice the size,
//! and the costs of the classes, by block, are compared:
//!
//! ```text
//!   blocks  | = | = | ½ | = | = | = | 2 | = | = | ½ | …     cost ½ < cost = ?  then halve
//! ```
//!
//! Programs have phases, and each wants its own size. So time is counted in laps: one is over when as many pages came as the
//! program has. A gain within a lap must be large, one that lasts for a window of eight need not. In each lap other blocks
//! are chosen.
//!
//! The cost of a fill is the time that the thread waited, plus what its pages push out: each page
//! that comes makes another one leave earlier, which comes again for that the more often the sooner pages come back, at the price
//! of a page in sets of the size in force, or of a page on average where there are several regions. That is how pages nobody needs
//! are charged, once they left: until then the program may come to them. And each set that comes leaves again, which costs by set
//! as well as by page: that is how smaller sets are charged. Where blocks are used whole, so that other sizes bring the same pages,
//! these costs are compared by page, which shows a tenth where blocks show a third: how many of its pages a block still has here
//! differs more than that.

use super::blocks::{Blocks, Price};
use super::gains::{DOUBLE, Gains, HALF, SURE};
use super::leaders::{Choice, Class, THIN, block};
use super::parts::{Part, Parts};
use crate::MAX_TRANSFER;
use core::ops::Range;

/// Fills in the class of half the size before anything is decided.
const ENOUGH: u64 = 128;
/// Fills after which other blocks are chosen where a class has too few.
const LONG: u64 = 8192;
/// A change must gain so much at the end of a window,
const GAIN: f64 = 0.05;
/// and so much, each way, by the square root of laps, before: what is seen in a short time may be a phase, and the next one may
/// want the opposite. Sets that are too small cost some times as much as the best, sets that are too large some hundred times.
const GAIN_EARLY: [f64; 2] = [0.25, 0.4];
/// Within a lap so much; once a size lasted, the larger of these by some laps alone.
const GAIN_AT_ONCE: [f64; 2] = [0.3, 0.4];
/// Where blocks are used whole, so much for twice the size, after as many laps as there is doubt: there is little to lose.
const GAIN_WHOLE: f64 = 0.1;
/// Of what must be gained early, this share for one more step the same way, in the first lap after it.
const ON: f64 = 0.25;
/// Laps of a window where the size is new. Once it went by few blocks are looked at, and it takes as many times longer to see as
/// much of them.
const WINDOW: f64 = 8.0;
/// Then less than so many laps say nothing: one phase of the program does not move a size that lasted.
const PHASES: f64 = 3.0;
/// Each time that the size turns back the next decision takes twice as long: a program whose phases want different
/// sizes gets the one that is good for all of them. At most so many times as long as the first.
const MOST_DOUBT: f64 = 8.0;

/// What a page costs that others push out.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Nanoseconds to let a page leave, all in all:
    pub evict_ns: f64,
    /// so many for its set,
    pub evict_set_ns: f64,
    /// and for the page itself.
    pub evict_page_ns: f64,
    /// Pages that come again for one that pushes others out.
    pub pushed: f64,
    /// Nanoseconds that the program waits for one, on average of all regions; `None`: there is only this one.
    pub page_ns: Option<f64>,
    /// Pages that hold something, here or away. When so many came, that is a lap.
    pub lap: usize,
}

/// What this lap has seen.
#[derive(Debug, Default)]
struct Lap {
    /// Of each class.
    blocks: [Blocks; 3],
    fills: u64,
    pages: u64,
}

/// From now on another size is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// So many pages.
    pub set: usize,
    /// For these alone; `None`: for all.
    pub part: Option<Part>,
}

/// A running trial.
#[derive(Debug)]
pub struct Trial {
    set: usize,
    lap: Lap,
    /// What this window has seen in the laps before.
    gains: Gains,
    /// What the laps at this size have seen, by parts: places differ for longer than a window.
    parts: Parts,
    /// Who tries what in this lap.
    choice: Choice,
    /// A window went by at this size.
    proven: bool,
    /// Few blocks are looked at.
    thin: bool,
    /// How much evidence it takes.
    doubt: f64,
    /// The first fill was seen, or is to come.
    begun: bool,
    /// The way of the last change.
    went: Option<usize>,
    /// Less than a lap says nothing.
    patient: bool,
    /// The ways that were surely worse when a lap was last over.
    worse: [bool; 2],
}

impl Trial {
    /// Starts with sets of `set` pages.
    #[must_use]
    pub fn new(set: usize) -> Trial {
        Trial {
            set,
            lap: Lap::default(),
            gains: Gains::default(),
            parts: Parts::default(),
            choice: Choice::new(),
            proven: false,
            thin: false,
            doubt: 1.0,
            begun: false,
            went: None,
            patient: false,
            worse: [false; 2],
        }
    }

    /// For rows: half a set always costs less until the program comes to the other half, and it does so late.
    #[must_use]
    pub fn patient(self) -> Trial {
        Trial { patient: true, ..self }
    }

    /// The first fill was seen, or is to come.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// The first fill is to come, in a set of `set` pages.
    pub fn begin(&mut self, set: usize, costs: Costs) {
        (self.set, self.begun) = (set, true);
        self.next_window(costs);
    }

    /// The set for a fault at `page`.
    #[must_use]
    pub fn set_at(&self, page: usize) -> usize {
        match self.choice.class(page / block(self.set)) {
            Some(Class::Half) => self.size(HALF),
            Some(Class::Double) => self.size(DOUBLE),
            Some(Class::Same) | None => self.set,
        }
    }

    /// The size in force.
    #[must_use]
    pub const fn set(&self) -> usize {
        self.set
    }

    /// The trial of a part of the same region, from now on a region of its own, with sets of `set` pages.
    #[must_use]
    pub fn apart(&self, set: usize) -> Trial {
        let went = (set != self.set).then_some(if set < self.set { HALF } else { DOUBLE });
        let doubt = (self.doubt * 2.0).min(MOST_DOUBT);
        let Trial { choice, begun, patient, .. } = *self;
        Trial { doubt, went, choice, begun, patient, ..Trial::new(set) }
    }

    /// A fill of `pages` pages at `page` that took `ns`. Says when the size changes; where that of some pages does, the
    /// caller gives them a trial of their own.
    pub fn filled(&mut self, page: usize, pages: usize, ns: u64, costs: Costs) -> Option<Change> {
        let number = page / block(self.set);
        if let Some(class) = self.choice.class(number) {
            self.lap.blocks[class as usize].filled(number, pages, ns);
        }
        let lap = &mut self.lap;
        lap.fills += 1;
        lap.pages += pages as u64;
        // Looking costs time: not at every fill.
        if !lap.fills.is_multiple_of(ENOUGH) {
            return None;
        }
        let (part, way) = self.better_way(costs)?;
        let set = self.size(way);
        if part.is_none() {
            if self.went.replace(way).is_some_and(|before| before != way) {
                self.doubt = (self.doubt * 2.0).min(MOST_DOUBT);
            }
            (self.set, self.proven) = (set, false);
        }
        (self.parts, self.worse, self.thin) = (Parts::default(), [false; 2], false);
        self.next_window(costs);
        Some(Change { set, part })
    }

    /// A fill for those who use the pages in another way. What a small set left out may come like that, and is no gain.
    pub fn filled_beside(&mut self, page: usize, pages: usize, ns: u64) {
        let size = block(self.set);
        let within = pages.min(size - page % size);
        let ns = ns as f64 * within as f64 / pages.max(1) as f64;
        if let Some(class) = self.choice.class(page / size) {
            self.lap.blocks[class as usize].beside(page / size, within, ns);
        }
    }

    /// Pages left.
    pub fn left(&mut self, pages: Range<usize>) {
        let size = block(self.set);
        let mut first = pages.start;
        while first < pages.end {
            let number = first / size;
            let end = ((number + 1) * size).min(pages.end);
            if let Some(class) = self.choice.class(number) {
                self.lap.blocks[class as usize].left(number, end - first);
            }
            first = end;
        }
    }

    /// The way to the size that costs clearly less by block, for all blocks or for some of them. Where a lap or the window
    /// ends, the next one begins.
    fn better_way(&mut self, costs: Costs) -> Option<(Option<Part>, usize)> {
        let laps = self.lap.pages as f64 / costs.lap.max(1) as f64;
        let enough = self.lap.blocks[Class::Half as usize].fills() >= ENOUGH;
        let Some(lap) = self.seen(laps, costs).filter(|_| enough) else {
            if laps >= WINDOW && self.lap.fills >= LONG {
                // Or a small region would have too few blocks for good.
                (self.thin, self.worse) = (false, [false; 2]);
                self.next_lap(costs);
            }
            return None;
        };
        let all = self.gains.and(lap);
        let early = self.early(all);
        let lap_ends = laps >= if self.proven { PHASES } else { 1.0 };
        let window_ends = all.laps >= self.doubt * if self.thin { WINDOW * THIN as f64 } else { WINDOW };
        let open = [HALF, DOUBLE].map(|way| self.size(way) != self.set);
        let least = if window_ends { [GAIN; 2] } else { early };
        // A size that lasted is not moved by a phase: some laps alone must gain much, and all together say nothing before a
        // new size would have been judged.
        let least_of_lap = if self.proven { [GAIN_AT_ONCE[DOUBLE]; 2] } else { self.early(lap) };
        let of_lap = lap.best(least_of_lap, SURE).filter(|_| lap_ends || !self.proven);
        let judged = !self.proven || all.laps >= WINDOW;
        let of_all = all.best(least, SURE).filter(|_| lap_ends && judged || window_ends);
        if let Some(way) = of_lap.or(of_all).filter(|&way| open[way]) {
            return Some((None, way));
        }
        if lap_ends {
            let laps_of = |pages: f64| pages * self.choice.one_in() / costs.lap.max(1) as f64;
            self.parts.add(&self.lap.blocks, laps_of, self.prices(costs), costs.evict_ns);
            let of_part = self.parts.best(block(self.set), |gains| self.early(gains));
            if let Some((part, way)) = of_part.filter(|&(_, way)| open[way]) {
                return Some((Some(part), way));
            }
            self.worse = all.worse(early);
        }
        let all_worse = [HALF, DOUBLE].iter().all(|&way| self.worse[way] || !open[way]);
        if window_ends || lap_ends && all_worse {
            (self.proven, self.thin) = (true, true);
            self.next_window(costs);
        } else if lap_ends {
            self.gains = all;
            self.next_lap(costs);
        }
        None
    }

    /// What a change must gain before a window is over.
    fn early(&self, gains: Gains) -> [f64; 2] {
        let laps = gains.laps;
        let just_went = !self.proven && self.gains.laps <= 0.0;
        let mut least = [HALF, DOUBLE].map(|way| {
            let gain = match laps < 1.0 {
                true if self.patient => [f64::INFINITY; 2],
                true => GAIN_AT_ONCE,
                false => GAIN_EARLY,
            };
            let least = gain[way] * (self.doubt / laps).sqrt();
            if just_went && self.went == Some(way) { least * ON } else { least }
        });
        // Rows are used whole only as long as nobody comes to what lies between them.
        if !self.patient && gains.whole() && laps >= self.doubt {
            least[DOUBLE] = least[DOUBLE].min(GAIN_WHOLE * self.doubt.sqrt());
        }
        least
    }

    /// What this lap says, once there are blocks of each class.
    fn seen(&self, laps: f64, costs: Costs) -> Option<Gains> {
        let samples = self.lap.blocks.each_ref().map(Blocks::all);
        Gains::seen(samples, laps, self.prices(costs), costs.evict_ns)
    }

    /// What a fill costs beside its time, for each way. What its pages push out belongs to all, and comes back at one price:
    /// with prices of their own, large sets would seem cheap because they take the room of the others. For the same reason
    /// blocks of twice the size get nothing for leaving in fewer sets, unless they are [used whole](Gains::whole): where all have
    /// that size, what a sweep comes back to may fit no more.
    fn prices(&self, costs: Costs) -> [Price; 2] {
        let here = || self.lap.blocks[Class::Same as usize].all().page_ns();
        let page_ns = costs.page_ns.unwrap_or_else(here);
        let back = costs.pushed * (page_ns + costs.evict_ns);
        let by_set = Price { set: costs.evict_set_ns, page: costs.evict_page_ns, room: back };
        [by_set, Price { set: 0.0, page: costs.evict_ns, room: back }]
    }

    /// Chooses other blocks.
    fn next_lap(&mut self, costs: Costs) {
        self.lap = Lap::default();
        self.choice = self.choice.next(costs.lap, self.set, self.thin, self.worse);
    }

    /// Forgets what was seen.
    fn next_window(&mut self, costs: Costs) {
        self.gains = Gains::default();
        self.next_lap(costs);
    }

    /// The size that a way leads to.
    fn size(&self, way: usize) -> usize {
        if way == HALF { (self.set / 2).max(1) } else { (self.set * 2).min(MAX_TRANSFER) }
    }
}

#[cfg(test)]
mod tests;
