//! The tuner of DLM (Midorikawa et al., FIT 2011): working set against local memory, at the end of each compute core.
//!
//! At each end, the number of units that were paged in (the working set) is compared with the number of units that fit
//! into local memory. If the working set does not fit, the unit becomes smaller: at once the largest size at which that
//! number of units fits. A smaller size may be slower at first and still lead to one that fits: in DLM's own table the
//! core takes 14.5 s, then 18.47 s, then 0.82 s. Times are therefore only compared between sizes at which the working
//! set fits. While it does not fit, the next smaller size is tried. Only if it fits at no size, the fastest size is
//! chosen.

use std::time::Duration;

/// The measurements of one iteration of a compute core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Size of a transfer unit, in base pages.
    pub unit: usize,
    /// Number of distinct units that were paged in.
    pub working_set: usize,
    /// Size of local memory, in base pages.
    pub local: usize,
    /// Duration of the iteration.
    pub took: Duration,
}

impl Iteration {
    /// Returns the number of units that fit into local memory.
    #[must_use]
    pub const fn local_units(&self) -> usize {
        self.local / self.unit
    }

    /// Returns whether the units of the working set fit into local memory.
    #[must_use]
    pub const fn fits(&self) -> bool {
        self.local_units() >= self.working_set
    }
}

/// The tuner of one compute core, which chooses the size of transfer units.
#[derive(Clone, Debug)]
pub struct ComputeCore {
    /// The smallest and the largest size of a unit, in pages.
    bounds: (usize, usize),
    tried: Vec<Iteration>,
    settled: bool,
}

impl ComputeCore {
    /// Makes a tuner for units of `smallest` to `largest` pages, both powers of two.
    #[must_use]
    pub const fn new(smallest: usize, largest: usize) -> ComputeCore {
        ComputeCore { bounds: (smallest, largest), tried: Vec::new(), settled: false }
    }

    /// Records the end of an iteration, and returns the size of units for the next iteration, in base pages.
    pub fn end(&mut self, now: Iteration) -> usize {
        let known = self.tried.iter().position(|it| it.unit == now.unit);
        match known {
            // The first iteration at a size includes the cost of the change, so that a later one replaces it.
            Some(at) => self.tried[at] = now,
            None => self.tried.push(now),
        }
        if self.settled {
            return now.unit;
        }
        if !now.fits() {
            let new = |unit: usize| self.tried.iter().all(|it| it.unit != unit);
            let wanted = self.large_enough(now);
            if wanted < now.unit && new(wanted) {
                return wanted;
            }
            // No size fits: the fastest one, once both neighbours of it were tried.
            let best = self.fastest(|_| true).unwrap_or(now.unit);
            let larger = (best * 2).min(self.bounds.1);
            if new(larger) {
                return larger;
            }
            self.settled = true;
            return best;
        }
        self.settled = true;
        // Of several sizes that fit, the fastest one.
        self.fastest(Iteration::fits).unwrap_or(now.unit)
    }

    /// Returns the largest size below the current one at which as many units fit into local memory as were paged in. It
    /// assumes that the program uses one page of each unit. Returns the smallest size if there is none.
    fn large_enough(&self, now: Iteration) -> usize {
        let mut unit = now.unit;
        while unit > self.bounds.0 {
            unit /= 2;
            if now.local / unit >= now.working_set {
                break;
            }
        }
        unit
    }

    fn fastest(&self, among: impl Fn(&Iteration) -> bool) -> Option<usize> {
        self.tried.iter().filter(|it| among(it)).min_by_key(|it| it.took).map(|it| it.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an iteration. Sizes of units are in KiB with pages of 4 KiB, as in DLM's tables.
    fn iteration(kib: usize, working_set: usize, local_units: usize, seconds: f64) -> Iteration {
        let unit = kib / 4;
        Iteration { unit, working_set, local: local_units * unit, took: Duration::from_secs_f64(seconds) }
    }

    #[test]
    fn bt_at_50_percent_follows_dlm() {
        let mut core = ComputeCore::new(16 / 4, 128 / 4);
        assert_eq!(core.end(iteration(128, 1280, 1216, 14.5)), 64 / 4);
        // The core is slower than before, but only a still smaller size makes it fast.
        assert_eq!(core.end(iteration(64, 2510, 2432, 18.47)), 32 / 4);
        for _ in 2..=10 {
            assert_eq!(core.end(iteration(32, 4163, 4864, 0.82)), 32 / 4);
        }
    }

    #[test]
    fn bt_at_5_percent_jumps_to_the_smallest_unit() {
        let mut core = ComputeCore::new(16 / 4, 128 / 4);
        assert_eq!(core.end(iteration(128, 1280, 120, 28.21)), 16 / 4);
        // No size fits: the larger neighbour is tried once, then the faster size remains.
        assert_eq!(core.end(iteration(16, 9846, 960, 19.69)), 32 / 4);
        assert_eq!(core.end(iteration(32, 5000, 480, 22.0)), 16 / 4);
        for _ in 3..=10 {
            assert_eq!(core.end(iteration(16, 9846, 960, 19.69)), 16 / 4);
        }
    }

    #[test]
    fn working_set_that_fits_keeps_its_size() {
        let mut core = ComputeCore::new(1, 512);
        assert_eq!(core.end(iteration(128, 100, 1216, 1.0)), 32);
        assert_eq!(core.end(iteration(128, 100, 1216, 2.0)), 32);
    }

    /// If the working set fits at no size, each size is tried once, and then the fastest one is kept.
    #[test]
    fn fastest_size_is_chosen_if_none_fits() {
        for fastest in [1, 16, 32, 512_usize] {
            let mut core = ComputeCore::new(1, 512);
            let mut unit = 16_usize;
            let mut units = Vec::new();
            for _ in 0..20 {
                let took =
                    Duration::from_millis(100 + 20 * u64::from(unit.ilog2().abs_diff(fastest.ilog2())));
                units.push(unit);
                unit = core.end(Iteration { unit, working_set: 6000 / unit, local: 4400, took });
            }
            assert_eq!(units[12..], [units[19]; 8], "{units:?}");
            let tried = |unit: usize| units[..12].contains(&unit);
            assert!(tried(unit) && tried((unit * 2).min(512)), "{units:?}");
            assert!(
                units[..12].iter().all(|other| unit.abs_diff(fastest) <= other.abs_diff(fastest)),
                "{units:?}"
            );
        }
    }

    #[test]
    fn sizes_stay_within_bounds() {
        let mut core = ComputeCore::new(4, 32);
        let mut unit = 32;
        for turn in 0..20 {
            let now = Iteration {
                unit,
                working_set: 1 << 20,
                local: 64,
                took: Duration::from_millis(100 + turn % 7 * 13),
            };
            unit = core.end(now);
            assert!((4..=32).contains(&unit) && unit.is_power_of_two());
        }
    }
}
