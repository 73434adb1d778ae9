//! Estimates mean refault distances. Evicted pages that have not refaulted yet count as well.

/// An estimate of the mean refault distance, as a number of evictions. Pages that have not refaulted yet contribute the
/// distance until now, as censored observations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RefaultDistance {
    /// Number of evicted pages that have not refaulted yet. Old ones count less, because some never refault.
    pub(super) absent: f64,
    /// Sum of the distances between evictions and refaults, or between evictions and now for pages that have not
    /// refaulted.
    pub(super) time: f64,
    /// Number of refaulted pages. Old refaults count less, as they do in `time`.
    pub(super) refaults: f64,
    /// Value of the eviction clock up to which `time` is summed.
    now: u32,
    /// Value of the eviction clock when the weight of old observations was last reduced.
    faded: u32,
}

impl RefaultDistance {
    /// Counts pages that were evicted.
    pub(super) fn evicted(&mut self, pages: u32) {
        self.absent += f64::from(pages);
    }

    /// Uncounts evictions of pages that could not be evicted after all, or that refaulted.
    pub(super) fn not_evicted(&mut self, pages: u32) {
        self.absent = (self.absent - f64::from(pages)).max(0.0);
    }

    /// Counts pages that refaulted.
    pub(super) fn refaulted(&mut self, pages: u32) {
        self.not_evicted(pages);
        self.refaults += f64::from(pages);
    }

    /// Advances the eviction clock to `now`. Local memory has `local` pages.
    pub(super) fn advance(&mut self, now: u32, local: usize) {
        self.time += self.absent * f64::from(now.wrapping_sub(self.now));
        self.now = now;
        if now.wrapping_sub(self.faded) as usize > 2 * local {
            let half = |it: f64| it / 2.0;
            // Some of the pages that are swapped out never refault: their weight decreases too.
            (self.time, self.refaults, self.faded) = (half(self.time), half(self.refaults), now);
            self.absent *= 0.75;
        }
    }

    /// Returns the mean refault distance. Before there are observations, it is half of `local`, the number of pages of
    /// local memory.
    pub(super) fn mean(&self, local: usize) -> f64 {
        /// Weight of the assumed mean distance, as a number of refaulted pages.
        const LITTLE: f64 = 32.0;
        (self.time + LITTLE * local as f64 / 2.0) / (self.refaults + LITTLE)
    }

    /// Adds the observations of another area.
    pub(super) fn add(&mut self, others: RefaultDistance) {
        self.absent += others.absent;
        self.time += others.time;
        self.refaults += others.refaults;
    }
}
