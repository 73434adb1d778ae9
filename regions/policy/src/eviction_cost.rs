//! Measures the cost of evictions, which set dueling adds to the time of fills.

use crate::SIGNIFICANT;
use crate::replacement::PROTECTED_SHARE;
use crate::transfer::Costs;

/// Number of evicted pages after which older observations are halved.
const RECENT: f64 = 65536.0;
/// Number of refaulted pages after which older observations are halved. It is also the number of early refaults that is
/// assumed before there are observations, since nothing refaults while a program creates its data.
const PRIOR: f64 = 32768.0;
/// Upper bound of the number of refaults that one more page of local memory is assumed to save for each refaulted page.
const MAX_SAVED: f64 = 1.5;
/// Number of batches of evictions between two fits of the write cost.
const FIT_INTERVAL: u32 = 64;

/// The sums over recent evictions, writes and refaults from which costs are computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvictionCost {
    units: f64,
    pages: f64,
    ns: f64,
    savings: RefaultSavings,
    writes: WriteCosts,
    /// Fixed cost of a write in nanoseconds, as computed by the last fit.
    write_ns: f64,
    /// Number of batches of evictions before the one at which the write cost is fitted again.
    until: u32,
}

impl EvictionCost {
    /// Adds a batch of evicted pages, in `units` transfer units, that took `ns` nanoseconds, with the writes of the
    /// changed ones among them.
    pub fn evicted(&mut self, units: usize, pages: usize, ns: u64, writes: WriteCosts) {
        if self.pages > RECENT {
            for sum in [&mut self.units, &mut self.pages, &mut self.ns] {
                *sum /= 2.0;
            }
            self.writes.add(-0.5, self.writes);
        }
        self.units += units as f64;
        self.pages += pages as f64;
        self.ns += ns as f64;
        self.writes.add(1.0, writes);
        self.until = self.until.checked_sub(1).unwrap_or_else(|| {
            self.write_ns = self.writes.per_write();
            FIT_INTERVAL
        });
    }

    /// Adds `pages` pages that refaulted at `distance`, while local memory had `local` pages.
    pub fn refaulted(&mut self, pages: usize, distance: u32, local: usize) {
        self.savings.add(pages as f64, local as f64 / f64::from(distance.max(1)));
    }

    /// Returns the costs of evictions, for epochs that end after `epoch_pages` filled pages.
    #[must_use]
    pub fn costs(self, epoch_pages: usize) -> Costs {
        let [evict_ns, units] = [self.ns, self.units].map(|sum| sum / self.pages.max(1.0));
        // Adjacent units share a write, and unchanged pages need none.
        let all_writes = self.write_ns * self.writes.count;
        // The fixed cost cannot exceed the total time.
        let evict_unit_ns = all_writes.min(self.ns) / self.units.max(1.0);
        let evict_page_ns = evict_ns - units * evict_unit_ns;
        Costs {
            evict_ns,
            evict_unit_ns,
            evict_page_ns,
            refaults_per_fill: self.savings.refaults_per_fill(),
            page_ns: None,
            epoch_pages,
        }
    }
}

/// The number of refaulted pages, and an estimate of the refaults that more local memory would have saved.
///
/// A filled page occupies local memory that other pages then lack. The cost of that depends on how soon they refault. A
/// page that refaulted at a distance below local memory would have stayed resident with twice the memory, and the
/// shorter its distance, the less memory would have been enough. A page with a longer distance belongs to a loop of
/// which a part is protected: there, each further page of local memory saves one refault in every iteration.
#[derive(Clone, Copy, Debug)]
struct RefaultSavings {
    pages: f64,
    saved: f64,
}

impl Default for RefaultSavings {
    fn default() -> RefaultSavings {
        RefaultSavings { pages: PRIOR, saved: PRIOR }
    }
}

impl RefaultSavings {
    /// Counts `pages` that refaulted. `room` is the size of local memory divided by their refault distance: above 1,
    /// the distance was shorter than local memory.
    fn add(&mut self, pages: f64, room: f64) {
        if self.pages > PRIOR {
            self.pages /= 2.0;
            self.saved /= 2.0;
        }
        self.pages += pages;
        self.saved += pages * if room < 1.0 { room * PROTECTED_SHARE } else { room.min(MAX_SAVED) };
    }

    /// Returns the number of refaults of other pages that one filled page causes.
    fn refaults_per_fill(self) -> f64 {
        self.saved / self.pages
    }
}

/// The sums of a least-squares fit to the times of writes. A write transfers adjacent pages; its time per page is
/// modelled as `page + write / pages`, where `write` is its fixed cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteCosts {
    count: f64,
    /// Sum over all writes of 1 / pages, and sum of its square.
    inverse: [f64; 2],
    /// Sum over all writes of the nanoseconds per page, and sum of their squares.
    ns: [f64; 2],
    /// Sum over all writes of the nanoseconds per page, divided by the pages.
    inverse_ns: f64,
}

impl WriteCosts {
    /// Adds a write of `pages` adjacent pages that took `ns` nanoseconds.
    pub fn add_write(&mut self, pages: usize, ns: u64) {
        let inverse = 1.0 / pages.max(1) as f64;
        let ns = ns as f64 * inverse;
        self.add(
            1.0,
            WriteCosts {
                count: 1.0,
                inverse: [inverse, inverse * inverse],
                ns: [ns, ns * ns],
                inverse_ns: inverse * ns,
            },
        );
    }

    /// Returns the fixed cost of a write in nanoseconds, or 0 while it is not significant.
    fn per_write(self) -> f64 {
        let WriteCosts { count, inverse: [inverse, square], ns: [ns, ns_ns], inverse_ns } = self;
        let apart = count * square - inverse * inverse;
        if count < 64.0 || apart <= 1e-6 * count * square {
            return 0.0;
        }
        let write = (count * inverse_ns - inverse * ns) / apart;
        let page = (ns - write * inverse) / count;
        let off = (ns_ns - write * inverse_ns - page * ns).max(0.0) / count;
        let error = (off * count / apart).sqrt();
        if write > SIGNIFICANT * error { write } else { 0.0 }
    }

    /// Adds the sums of `more`, multiplied by `share`.
    fn add(&mut self, share: f64, more: WriteCosts) {
        self.count += share * more.count;
        self.inverse_ns += share * more.inverse_ns;
        for power in 0..2 {
            self.inverse[power] += share * more.inverse[power];
            self.ns[power] += share * more.ns[power];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the costs after writes of `pages` pages each, of which one in `one_in` has twice as many. A write takes
    /// 2 µs and 0.5 µs a page, up to half more or less. It contains two units.
    fn seen(pages: usize, one_in: usize) -> Costs {
        let mut cost = EvictionCost::default();
        let mut random = 12345_u64;
        for write in 1..20_000 {
            largesse_random::next(&mut random);
            let pages = if write % one_in == 0 { 2 * pages } else { pages };
            let ns = (2000 + 500 * pages as u64) * (64 + (random >> 58)) / 96;
            let mut writes = WriteCosts::default();
            writes.add_write(pages, ns);
            cost.evicted(2, 2 * pages, ns + 100, writes);
        }
        cost.costs(1)
    }

    // This test has been seen to fail when all refaults have the same weight.
    #[test]
    fn late_refaults_need_more_room_to_save() {
        let refaults_per_fill = |distance: u32| {
            let mut cost = EvictionCost::default();
            (0..100_000).for_each(|_| cost.refaulted(4, distance, 1000));
            cost.costs(1).refaults_per_fill
        };
        assert!(EvictionCost::default().costs(1).refaults_per_fill > 0.99, "nothing is known");
        let [at_once, soon, before, late] = [1, 800, 1000, 5000].map(refaults_per_fill);
        assert!((at_once - MAX_SAVED).abs() < 0.01, "{at_once}");
        assert!((soon - 1.25).abs() < 0.01 && (before - 1.0).abs() < 0.01, "{soon} {before}");
        assert!((late - 0.15).abs() < 0.01, "{late}");
    }

    #[test]
    fn write_cost_is_split_by_unit_and_page() {
        for (pages, one_in) in [(1, 3), (1, 12), (4, 12)] {
            let costs = seen(pages, one_in);
            assert!((850.0..1150.0).contains(&costs.evict_unit_ns), "{costs:?}");
            assert!((200.0..350.0).contains(&costs.evict_page_ns), "{costs:?}");
        }
        let costs = seen(4, usize::MAX);
        assert_eq!(costs.evict_unit_ns, 0.0, "nobody can tell");
        assert_eq!(costs.evict_page_ns, costs.evict_ns);
    }
}
