//! What it costs when pages leave, for the trial.

use crate::replacement::KEPT_SHARE;
use crate::transfer::Costs;

/// What was seen counts for half, each time that so many more pages left,
const LATELY: f64 = 65536.0;
/// or came back. As many are believed to have come back soon before anything is known: while a program makes its pages nothing
/// comes back yet.
const RETURNED: f64 = 32768.0;
/// What a page that came back counts for at most, however soon.
const MOST_SPARED: f64 = 1.5;
/// Batches from one look at that to the next.
const OFTEN: u32 = 64;
/// What is known is so many standard errors.
const SURE: f64 = 3.0;

/// Pages that left lately, what that took, and what came back meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leaving {
    sets: f64,
    pages: f64,
    ns: f64,
    returns: Returns,
    trips: Trips,
    /// What a trip costs beside its pages, and batches until that is looked at again.
    trip_ns: f64,
    until: u32,
}

impl Leaving {
    /// Pages of so many sets left together, those that were changed in such trips.
    pub fn left(&mut self, sets: usize, pages: usize, ns: u64, trips: Trips) {
        if self.pages > LATELY {
            for sum in [&mut self.sets, &mut self.pages, &mut self.ns] {
                *sum /= 2.0;
            }
            self.trips.add(-0.5, self.trips);
        }
        self.sets += sets as f64;
        self.pages += pages as f64;
        self.ns += ns as f64;
        self.trips.add(1.0, trips);
        self.until = self.until.checked_sub(1).unwrap_or_else(|| {
            self.trip_ns = self.trips.of_each();
            OFTEN
        });
    }

    /// So many pages came that had been here before, `away` while so many others left, where `local` may be here.
    pub fn came_back(&mut self, pages: usize, away: u32, local: usize) {
        self.returns.add(pages as f64, local as f64 / f64::from(away.max(1)));
    }

    pub fn costs(self, lap: usize) -> Costs {
        let [evict_ns, sets] = [self.ns, self.sets].map(|sum| sum / self.pages.max(1.0));
        // Neighbours share a trip, and what was not changed makes none.
        let all_trips = self.trip_ns * self.trips.count;
        // All of it is by set at most.
        let evict_set_ns = all_trips.min(self.ns) / self.sets.max(1.0);
        let evict_page_ns = evict_ns - sets * evict_set_ns;
        Costs { evict_ns, evict_set_ns, evict_page_ns, pushed: self.returns.pushed(), page_ns: None, lap }
    }
}

/// Pages that came back, and how many of them more room would have spared.
///
/// A page that comes takes room from the others. What that costs depends on how soon they come back. Had there been twice the
/// room, a page that was away while fewer left than may be here would not have left; the sooner it came back, the less room
/// spares it. One that was away for longer is one of a loop, of which a part is kept: each page of room for that spares one
/// in every round.
#[derive(Clone, Copy, Debug)]
struct Returns {
    pages: f64,
    spared: f64,
}

impl Default for Returns {
    fn default() -> Returns {
        Returns { pages: RETURNED, spared: RETURNED }
    }
}

impl Returns {
    /// So many more; as many left while they were away as may be here, divided by `room`.
    fn add(&mut self, pages: f64, room: f64) {
        if self.pages > RETURNED {
            self.pages /= 2.0;
            self.spared /= 2.0;
        }
        self.pages += pages;
        self.spared += pages * if room < 1.0 { room * KEPT_SHARE } else { room.min(MOST_SPARED) };
    }

    /// Pages that come again for one that pushes others out.
    fn pushed(self) -> f64 {
        self.spared / self.pages
    }
}

/// Pages that went to the store, neighbours together: sums for a least-squares fit of what a page takes, `page + trip / pages`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    count: f64,
    /// Of 1 / pages, and of its square.
    part: [f64; 2],
    /// Of nanoseconds a page, and of their square.
    ns: [f64; 2],
    /// Of both, multiplied.
    part_ns: f64,
}

impl Trips {
    /// Neighbours went.
    pub fn went(&mut self, pages: usize, ns: u64) {
        let part = 1.0 / pages.max(1) as f64;
        let ns = ns as f64 * part;
        self.add(1.0, Trips { count: 1.0, part: [part, part * part], ns: [ns, ns * ns], part_ns: part * ns });
    }

    /// What a trip costs beside its pages; nothing as long as that is not sure.
    fn of_each(self) -> f64 {
        let Trips { count, part: [part, square], ns: [ns, ns_ns], part_ns } = self;
        let apart = count * square - part * part;
        if count < 64.0 || apart <= 1e-6 * count * square {
            return 0.0;
        }
        let trip = (count * part_ns - part * ns) / apart;
        let page = (ns - trip * part) / count;
        let off = (ns_ns - trip * part_ns - page * ns).max(0.0) / count;
        let error = (off * count / apart).sqrt();
        if trip > SURE * error { trip } else { 0.0 }
    }

    /// This share of some more.
    fn add(&mut self, share: f64, more: Trips) {
        self.count += share * more.count;
        self.part_ns += share * more.part_ns;
        for power in 0..2 {
            self.part[power] += share * more.part[power];
            self.ns[power] += share * more.ns[power];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Trips of `pages` each and some of twice as many, 2 us each and 0.5 a page, give or take a half; half of the sets make
    /// one.
    fn seen(pages: usize, one_in: usize) -> Costs {
        let mut leaving = Leaving::default();
        let mut random = 12345_u64;
        for trip in 1..20_000 {
            crate::random::next(&mut random);
            let pages = if trip % one_in == 0 { 2 * pages } else { pages };
            let ns = (2000 + 500 * pages as u64) * (64 + (random >> 58)) / 96;
            let mut trips = Trips::default();
            trips.went(pages, ns);
            leaving.left(2, 2 * pages, ns + 100, trips);
        }
        leaving.costs(1)
    }

    // Seen to fail when all that comes back counts alike.
    #[test]
    fn what_comes_back_late_needs_more_room_for_each_page_that_stays() {
        let pushed = |away: u32| {
            let mut leaving = Leaving::default();
            (0..100_000).for_each(|_| leaving.came_back(4, away, 1000));
            leaving.costs(1).pushed
        };
        assert!(Leaving::default().costs(1).pushed > 0.99, "nothing is known");
        let [at_once, soon, before, late] = [1, 800, 1000, 5000].map(pushed);
        assert!((at_once - MOST_SPARED).abs() < 0.01, "{at_once}");
        assert!((soon - 1.25).abs() < 0.01 && (before - 1.0).abs() < 0.01, "{soon} {before}");
        assert!((late - 0.15).abs() < 0.01, "{late}");
    }

    #[test]
    fn what_a_set_costs_is_told_from_what_its_pages_cost() {
        for (pages, one_in) in [(1, 3), (1, 12), (4, 12)] {
            let costs = seen(pages, one_in);
            assert!((850.0..1150.0).contains(&costs.evict_set_ns), "{costs:?}");
            assert!((200.0..350.0).contains(&costs.evict_page_ns), "{costs:?}");
        }
        let costs = seen(4, usize::MAX);
        assert_eq!(costs.evict_set_ns, 0.0, "nobody can tell");
        assert_eq!(costs.evict_page_ns, costs.evict_ns);
    }
}
