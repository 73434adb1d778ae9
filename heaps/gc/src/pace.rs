//! Implements the pacer, which decides how many bytes are allocated between two collections, and how much free memory
//! the heap retains for them.
//!
//! The budget (bytes to allocate until the next collection) equals the live bytes, but at least a floor, so that the
//! cost of marking is spread over as many allocated bytes as are marked. When allocation is so fast that collections
//! exceed their share of time, the budget grows, within bounds, until collections take no more than that share.

use std::time::Duration;

/// Upper bound of the budget as a multiple of the floor. The larger of this bound and that of [`MOST_LIVE`] applies.
const MOST_FLOORS: usize = 8;
/// Upper bound of the budget as a multiple of the live bytes. The larger of this bound and that of [`MOST_FLOORS`]
/// applies.
const MOST_LIVE: usize = 4;

/// Weight in the moving average of a sample that is longer than the average, because it may include time in which the
/// system ran other processes. A shorter sample replaces the average, because nothing makes a sample too short.
const NEWS: f64 = 0.25;

/// Assumed seconds of running time per allocated byte before the first measurement.
const FIRST_GUESS: f64 = 1e-9;

/// Share of the memory beyond need that is released after each collection. Releasing it slowly avoids page faults when
/// the heap's size oscillates.
const GIVEN_BACK: f64 = 0.25;

/// Decides when to collect, by a budget of bytes to allocate.
#[derive(Debug)]
pub(crate) struct Pace {
    floor: usize,
    /// Share of time that collections may take, 0 to 1.
    share: f64,
    /// Number of bytes to allocate until the next collection.
    budget: usize,
    /// Moving average of the running time per allocated byte, in seconds.
    byte: Option<f64>,
    /// Moving average of the duration of a collection, in seconds.
    pause: Option<f64>,
    kept: f64,
}

impl Pace {
    pub(crate) const fn new(floor: usize, share: f64) -> Pace {
        Pace { floor, share, budget: floor, byte: None, pause: None, kept: 0.0 }
    }

    /// Records a collection that took `pause`, after threads ran for `ran` and allocated `bytes` bytes.
    pub(crate) fn observe(&mut self, ran: Duration, bytes: usize, pause: Duration) {
        self.pause = Some(smoothed(self.pause, pause.as_secs_f64()));
        // An explicit collection may follow too few allocations to measure.
        if bytes >= self.floor / 4 {
            self.byte = Some(smoothed(self.byte, ran.as_secs_f64() / bytes as f64));
        }
    }

    /// Sets and returns the number of bytes to allocate until the next collection, after a collection that found
    /// `live` bytes alive.
    pub(crate) fn set_budget(&mut self, live: usize) -> usize {
        let least = self.floor.max(live);
        let most = (self.floor * MOST_FLOORS).max(live.saturating_mul(MOST_LIVE));
        let (pause, byte) = (self.pause.unwrap_or(0.0), self.byte.unwrap_or(FIRST_GUESS));
        let wanted = pause * (1.0 / self.share - 1.0) / byte;
        self.budget = (wanted as usize).clamp(least, most);
        self.budget
    }

    /// Returns the current budget in bytes.
    pub(crate) const fn budget(&self) -> usize {
        self.budget
    }

    /// Returns whether small holes between live objects may stay empty: the heap uses at most the floor or, if more,
    /// twice the `live` bytes.
    pub(crate) fn affords_holes(&self, used: usize, live: usize) -> bool {
        used <= self.floor.max(live * 2)
    }

    /// Returns the number of bytes of memory to retain when `needed` bytes will be used before the next collection.
    pub(crate) fn retain(&mut self, needed: usize) -> usize {
        let excess = self.kept - needed as f64;
        self.kept = needed as f64 + (excess * (1.0 - GIVEN_BACK)).max(0.0);
        (self.kept * 1.125) as usize
    }
}

fn smoothed(before: Option<f64>, news: f64) -> f64 {
    before.map_or(news, |before| news.min(before + (news - before) * NEWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Returns the budget in MiB after `times` collections that found `live` MiB, with `ran` milliseconds of running
    /// time per allocated MiB and pauses of `pause` milliseconds.
    fn after(pace: &mut Pace, times: usize, live: usize, ran: f64, pause: f64) -> usize {
        for _ in 0..times {
            let bytes = pace.budget();
            let ran = ran * (bytes / MIB) as f64;
            pace.observe(Duration::from_secs_f64(ran / 1e3), bytes, Duration::from_secs_f64(pause / 1e3));
            pace.set_budget(live * MIB);
        }
        pace.budget() / MIB
    }

    #[test]
    fn budget_follows_live_bytes() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!((pace.set_budget(MIB), pace.set_budget(100 * MIB)), (32 * MIB, 100 * MIB));
    }

    #[test]
    fn budget_meets_the_share_of_time() {
        for (live, share) in [(1, 0.1), (50, 0.1), (1, 0.05)] {
            let mut pace = Pace::new(32 * MIB, share);
            let budget = after(&mut pace, 2, live, 0.25, 2.0) as f64;
            let reached = 2.0 / (2.0 + budget * 0.25);
            assert!((reached / share - 1.0).abs() < 0.1, "{budget} MiB, share {reached}, not {share}");
            assert_eq!(after(&mut pace, 60, live, 30.0, 2.0), live.max(32));
        }
    }

    #[test]
    fn budget_is_bounded() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(after(&mut pace, 20, 1, 0.1, 50.0), 256);
        assert_eq!(after(&mut pace, 20, 200, 0.1, 500.0), 800);
        let mut never = Pace::new(32 * MIB, 1.0);
        assert_eq!(after(&mut never, 20, 1, 0.1, 50.0), 32);
    }

    #[test]
    fn one_long_pause_keeps_the_budget() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(after(&mut pace, 5, 1, 3.0, 1.0), 32);
        assert_eq!(after(&mut pace, 1, 1, 3.0, 20.0), 32);
        assert_eq!(after(&mut pace, 5, 1, 3.0, 1.0), 32);
    }

    #[test]
    fn explicit_collection_sets_the_first_budget() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        pace.observe(Duration::from_micros(1), 0, Duration::from_millis(8));
        assert!((60..80).contains(&(pace.set_budget(MIB) / MIB)), "{}", pace.budget());
    }

    #[test]
    fn budget_follows_faster_allocation_immediately() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        after(&mut pace, 20, 1, 3.0, 2.0);
        assert!(after(&mut pace, 1, 1, 0.25, 2.0) >= 70, "{}", pace.budget());
    }

    #[test]
    fn excess_memory_is_released_slowly() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(pace.retain(80 * MIB), 90 * MIB);
        let kept: Vec<usize> = (0..20).map(|_| pace.retain(8 * MIB) / MIB).collect();
        assert!(kept[0] > 60 && kept.is_sorted_by(|a, b| a >= b) && kept[19] == 9, "{kept:?}");
    }
}
