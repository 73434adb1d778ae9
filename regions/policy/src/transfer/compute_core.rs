//! The seed's tuner: working set against local memory, at the end of each compute core.
//!
//! At each end, the sets that were swapped in (the working set) are compared with the sets that
//! fit. If they do not fit, sets become smaller: at once to the largest size at which as many fit.
//! A smaller size may be slower at first and still lead to one that fits: in the seed's own table the
//! core takes 14.5 s, then 18.47 s, then 0.82 s. So times are compared only between sizes at which
//! the working set fits; as long as it does not, the next smaller size is tried, and only when there
//! is none left the fastest of those that were tried is taken.

use std::time::Duration;

/// What one pass through a compute core showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Base pages of a set.
    pub set: usize,
    /// Distinct sets that were swapped in.
    pub working_set: usize,
    /// Base pages that may be here.
    pub local: usize,
    /// How long it took.
    pub took: Duration,
}

impl Iteration {
    /// Sets that may be here.
    #[must_use]
    pub const fn local_sets(&self) -> usize {
        self.local / self.set
    }

    /// The working set fits.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.local_sets() >= self.working_set
    }
}

/// One compute core: its tries, and what was decided.
#[derive(Clone, Debug)]
pub struct Core {
    /// The smallest and the largest set.
    bounds: (usize, usize),
    tried: Vec<Iteration>,
    settled: bool,
}

impl Core {
    /// A core whose sets have from `smallest` to `largest` pages, both powers of two.
    #[must_use]
    pub const fn new(smallest: usize, largest: usize) -> Core {
        Core { bounds: (smallest, largest), tried: Vec::new(), settled: false }
    }

    /// The set for the next iteration.
    pub fn end(&mut self, now: Iteration) -> usize {
        let known = self.tried.iter().position(|it| it.set == now.set);
        match known {
            // The first time at a size pays for the change: later times are the better measure.
            Some(at) => self.tried[at] = now,
            None => self.tried.push(now),
        }
        if self.settled {
            return now.set;
        }
        if !now.fits() {
            let new = |set: usize| self.tried.iter().all(|it| it.set != set);
            let wanted = self.large_enough(now);
            if wanted < now.set && new(wanted) {
                return wanted;
            }
            // Nothing fits, at any size: the fastest of the tried, once each neighbour was tried.
            let best = self.fastest(|_| true).unwrap_or(now.set);
            let larger = (best * 2).min(self.bounds.1);
            if new(larger) {
                return larger;
            }
            self.settled = true;
            return best;
        }
        self.settled = true;
        // Two sizes that fit: the faster one.
        self.fastest(Iteration::fits).unwrap_or(now.set)
    }

    /// The largest size at which as many sets fit as were swapped in: each is taken to hold one
    /// useful page. At least one size below, at least the smallest.
    fn large_enough(&self, now: Iteration) -> usize {
        let mut set = now.set;
        while set > self.bounds.0 {
            set /= 2;
            if now.local / set >= now.working_set {
                break;
            }
        }
        set
    }

    fn fastest(&self, among: impl Fn(&Iteration) -> bool) -> Option<usize> {
        self.tried.iter().filter(|it| among(it)).min_by_key(|it| it.took).map(|it| it.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes in KiB over pages of 4 KiB, as the seed gives them.
    fn iteration(kib: usize, working_set: usize, local_sets: usize, seconds: f64) -> Iteration {
        let set = kib / 4;
        Iteration { set, working_set, local: local_sets * set, took: Duration::from_secs_f64(seconds) }
    }

    #[test]
    fn bt_at_50_percent_goes_the_way_of_the_seed() {
        let mut core = Core::new(16 / 4, 128 / 4);
        assert_eq!(core.end(iteration(128, 1280, 1216, 14.5)), 64 / 4);
        // Slower than before: going back now would lose.
        assert_eq!(core.end(iteration(64, 2510, 2432, 18.47)), 32 / 4);
        for _ in 2..=10 {
            assert_eq!(core.end(iteration(32, 4163, 4864, 0.82)), 32 / 4);
        }
    }

    #[test]
    fn bt_at_5_percent_jumps_to_the_smallest_set() {
        let mut core = Core::new(16 / 4, 128 / 4);
        assert_eq!(core.end(iteration(128, 1280, 120, 28.21)), 16 / 4);
        // Nothing fits: its larger neighbour is tried once, then the faster one stays.
        assert_eq!(core.end(iteration(16, 9846, 960, 19.69)), 32 / 4);
        assert_eq!(core.end(iteration(32, 5000, 480, 22.0)), 16 / 4);
        for _ in 3..=10 {
            assert_eq!(core.end(iteration(16, 9846, 960, 19.69)), 16 / 4);
        }
    }

    #[test]
    fn a_working_set_that_fits_is_left_alone() {
        let mut core = Core::new(1, 512);
        assert_eq!(core.end(iteration(128, 100, 1216, 1.0)), 32);
        assert_eq!(core.end(iteration(128, 100, 1216, 2.0)), 32);
    }

    /// Where nothing fits at any size, sizes are tried once each, and then the fastest stays.
    #[test]
    fn what_never_fits_ends_at_the_fastest_size() {
        for fastest in [1, 16, 32, 512_usize] {
            let mut core = Core::new(1, 512);
            let mut set = 16_usize;
            let mut sets = Vec::new();
            for _ in 0..20 {
                let took = Duration::from_millis(100 + 20 * u64::from(set.ilog2().abs_diff(fastest.ilog2())));
                sets.push(set);
                set = core.end(Iteration { set, working_set: 6000 / set, local: 4400, took });
            }
            assert_eq!(sets[12..], [sets[19]; 8], "{sets:?}");
            let tried = |set: usize| sets[..12].contains(&set);
            assert!(tried(set) && tried((set * 2).min(512)), "{sets:?}");
            assert!(
                sets[..12].iter().all(|other| set.abs_diff(fastest) <= other.abs_diff(fastest)),
                "{sets:?}"
            );
        }
    }

    #[test]
    fn sets_never_leave_their_bounds() {
        let mut core = Core::new(4, 32);
        let mut set = 32;
        for turn in 0..20 {
            let now = Iteration {
                set,
                working_set: 1 << 20,
                local: 64,
                took: Duration::from_millis(100 + turn % 7 * 13),
            };
            set = core.end(now);
            assert!((4..=32).contains(&set) && set.is_power_of_two());
        }
    }
}
