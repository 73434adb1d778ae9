//! How much is handed out from one collection to the next, and how much memory is kept for it.
//!
//! As much as is alive, but at least a floor: then the cost of marking is spread over as many bytes as there are to mark.
//! Where objects are made faster than that pays for, the heap pays with memory: as much is handed out as threads
//! use up in the time that makes the last collections' pauses their share of it, within bounds.

use std::time::Duration;

/// For a low share of collections, at most so many times the floor is handed out, or
const MOST_FLOORS: usize = 8;
/// so many times what is alive, if that is more.
const MOST_LIVE: usize = 4;

/// A time that is longer than those before counts so much, those before it the rest: when the system ran somebody
/// else meanwhile it says little. A shorter one counts at once: nothing makes a time too short.
const NEWS: f64 = 0.25;

/// Seconds in which threads use up a byte, until it was seen.
const FIRST_GUESS: f64 = 1e-9;

/// Of memory that is not needed any more, so much is given back after a collection: what comes and goes need not be
/// touched first again and again.
const GIVEN_BACK: f64 = 0.25;

/// The pace of collections.
#[derive(Debug)]
pub(crate) struct Pace {
    floor: usize,
    /// The share of time that collections may take.
    share: f64,
    /// Bytes to be handed out until the next collection.
    budget: usize,
    /// Seconds in which threads use up a byte, smoothed.
    byte: Option<f64>,
    /// Seconds of a pause, smoothed.
    pause: Option<f64>,
    kept: f64,
}

impl Pace {
    pub(crate) const fn new(floor: usize, share: f64) -> Pace {
        Pace { floor, share, budget: floor, byte: None, pause: None, kept: 0.0 }
    }

    /// A collection took so long, after threads ran for `ran` and got so many bytes.
    pub(crate) fn observe(&mut self, ran: Duration, bytes: usize, pause: Duration) {
        self.pause = Some(smoothed(self.pause, pause.as_secs_f64()));
        // Somebody may ask for a collection when there was next to nothing to see.
        if bytes >= self.floor / 4 {
            self.byte = Some(smoothed(self.byte, ran.as_secs_f64() / bytes as f64));
        }
    }

    /// Bytes to be handed out until the next collection, after one that found `live` bytes.
    pub(crate) fn set_budget(&mut self, live: usize) -> usize {
        let least = self.floor.max(live);
        let most = (self.floor * MOST_FLOORS).max(live.saturating_mul(MOST_LIVE));
        let (pause, byte) = (self.pause.unwrap_or(0.0), self.byte.unwrap_or(FIRST_GUESS));
        let wanted = pause * (1.0 / self.share - 1.0) / byte;
        self.budget = (wanted as usize).clamp(least, most);
        self.budget
    }

    /// What was answered last.
    pub(crate) const fn budget(&self) -> usize {
        self.budget
    }

    /// Whether small holes between what is alive may stay empty: little is used, or not much more than is alive.
    pub(crate) fn affords_holes(&self, used: usize, live: usize) -> bool {
        used <= self.floor.max(live * 2)
    }

    /// Bytes to keep when `needed` will be used before the next collection.
    pub(crate) fn keep(&mut self, needed: usize) -> usize {
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

    /// The budget after `times` collections that found `live` MiB: milliseconds before each, for a MiB, and in it.
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
    fn much_is_handed_out_when_much_is_alive() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!((pace.set_budget(MIB), pace.set_budget(100 * MIB)), (32 * MIB, 100 * MIB));
    }

    #[test]
    fn so_much_is_handed_out_that_collections_take_their_share() {
        for (live, share) in [(1, 0.1), (50, 0.1), (1, 0.05)] {
            let mut pace = Pace::new(32 * MIB, share);
            let budget = after(&mut pace, 2, live, 0.25, 2.0) as f64;
            let reached = 2.0 / (2.0 + budget * 0.25);
            assert!((reached / share - 1.0).abs() < 0.1, "{budget} MiB, {reached} and not {share}");
            assert_eq!(after(&mut pace, 60, live, 30.0, 2.0), live.max(32));
        }
    }

    #[test]
    fn memory_has_its_bounds() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(after(&mut pace, 20, 1, 0.1, 50.0), 256);
        assert_eq!(after(&mut pace, 20, 200, 0.1, 500.0), 800);
        let mut never = Pace::new(32 * MIB, 1.0);
        assert_eq!(after(&mut never, 20, 1, 0.1, 50.0), 32);
    }

    #[test]
    fn one_slow_pause_changes_nothing() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(after(&mut pace, 5, 1, 3.0, 1.0), 32);
        assert_eq!(after(&mut pace, 1, 1, 3.0, 20.0), 32);
        assert_eq!(after(&mut pace, 5, 1, 3.0, 1.0), 32);
    }

    #[test]
    fn a_pause_that_somebody_asked_for_tells_the_first_budget() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        pace.observe(Duration::from_micros(1), 0, Duration::from_millis(8));
        assert!((60..80).contains(&(pace.set_budget(MIB) / MIB)), "{}", pace.budget());
    }

    #[test]
    fn threads_that_begin_to_use_up_more_are_followed_at_once() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        after(&mut pace, 20, 1, 3.0, 2.0);
        assert!(after(&mut pace, 1, 1, 0.25, 2.0) >= 70, "{}", pace.budget());
    }

    #[test]
    fn memory_is_kept_for_a_while() {
        let mut pace = Pace::new(32 * MIB, 0.1);
        assert_eq!(pace.keep(80 * MIB), 90 * MIB);
        let kept: Vec<usize> = (0..20).map(|_| pace.keep(8 * MIB) / MIB).collect();
        assert!(kept[0] > 60 && kept.is_sorted_by(|a, b| a >= b) && kept[19] == 9, "{kept:?}");
    }
}
