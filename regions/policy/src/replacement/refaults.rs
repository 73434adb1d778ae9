//! Counts of refaults by distance, which show how much more local memory a program could use.

/// Number of classes of distances, one for each power of two.
const CLASSES: usize = 32;
/// Share of the refaults, in percent, that determine the working set. The other refaults, such as those of data that a
/// program uses once in a while, would cost more memory than they save time.
const COVERED: u64 = 95;

/// Number of refaulted pages by refault distance. The refault distance of a page is the number of pages that were
/// evicted between its eviction and its refault. It is also the number of pages by which local memory was too small to
/// hold the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refaults([DistanceClass; CLASSES]);

/// The refaults at distances of at least 2^n pages and below 2^(n+1). Those at distance 0 are in the class of n = 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct DistanceClass {
    /// Number of refaulted pages.
    pages: u64,
    /// Sum of the refault distances of these pages.
    distance: u64,
}

impl Refaults {
    /// Counts `pages` pages that refault at `distance`.
    pub fn add(&mut self, pages: u32, distance: u32) {
        let class = &mut self.0[distance.max(1).ilog2() as usize];
        class.pages += u64::from(pages);
        class.distance += u64::from(pages) * u64::from(distance);
    }

    /// Returns the refaults since `before`, an earlier copy of these counts.
    #[must_use]
    pub fn since(&self, before: &Refaults) -> Refaults {
        Refaults(core::array::from_fn(|at| DistanceClass {
            pages: self.0[at].pages.saturating_sub(before.0[at].pages),
            distance: self.0[at].distance.saturating_sub(before.0[at].distance),
        }))
    }

    /// Returns the number of pages that refaulted.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.0.iter().map(|class| class.pages).sum()
    }

    /// Returns how many more pages local memory needs to hold the working set; 0 without refaults.
    ///
    /// By Little's law, the number of evicted pages that will refault is their rate of refaults times their mean time
    /// until the refault. Time is measured in evictions, so that the rate is one page per unit of time, and the number
    /// of pages is the mean distance. The classes of the longest distances are left out while 95 percent of the
    /// refaults remain.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let enough = (self.pages() * COVERED).div_ceil(100);
        let (mut pages, mut distance) = (0, 0);
        for class in self.0 {
            if pages > 0 && pages >= enough {
                break;
            }
            pages += class.pages;
            distance += class.distance;
        }
        distance / pages.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::refaults;
    use super::*;

    /// Checks that the working set computed from the refaults of `pages` differs from `want` pages by at most a third.
    #[track_caller]
    fn check(name: &str, local: usize, want: u64, pages: impl Iterator<Item = u32>) {
        let found = local as u64 + refaults(local, pages).missing();
        assert!(
            (want * 3 / 4..=want * 4 / 3).contains(&found),
            "{name}: {found} pages instead of {want}, with {local} local"
        );
    }

    #[test]
    fn working_set_of_known_patterns() {
        for (local, all) in [(1000, 8000), (2000, 8000), (6000, 8000), (7500, 8000)] {
            let cyclic = (0..20).flat_map(|_| 0..all);
            check("cyclic", local, u64::from(all), cyclic);
            let mut state = 7;
            let mut random = || (largesse_random::next(&mut state) >> 33) as u32 % all;
            check("random", local, u64::from(all), (0..200_000).map(|_| random()));
            // One page in 32 is of a large array that is traversed once.
            let mixed = (0..200_000).map(|at| if at % 32 == 0 { all + at } else { random() });
            check("random and single use", local, u64::from(all), mixed);
        }
    }

    #[test]
    fn rare_long_distances_do_not_count() {
        let mut refaults = Refaults::default();
        refaults.add(95, 1000);
        refaults.add(5, 1_000_000);
        assert_eq!(refaults.missing(), 1000, "pages beyond local memory");
    }

    #[test]
    fn program_without_refaults_misses_nothing() {
        let (once, none) = (refaults(1000, 0..100_000), Refaults::default());
        assert_eq!((once, once.missing()), (none, 0), "each page used once");
    }

    #[test]
    fn copies_bound_a_window() {
        let mut refaults = Refaults::default();
        refaults.add(10, 50_000);
        let before = refaults;
        refaults.add(4, 0);
        refaults.add(4, 200);
        let window = refaults.since(&before);
        assert_eq!((window.pages(), window.missing()), (8, 100));
    }
}
