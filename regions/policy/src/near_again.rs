//! When the far memory of a process with a limit becomes near again.
//!
//! ```text
//!   far ──there has been room for all pages for a while──► swapped-out pages are fetched back ──► near
//!    ▲                                                           │ no room any more                │
//!    ├───────────────────────────────────────────────────────────┘                                 │
//!    └───────────────────────────── the limit comes near (not decided here) ───────────────────────┘
//! ```
//! Memory becomes far when the reserve of the limit is reached, and near only while as much as the reserve would be
//! free in addition. So a program that stays at one size does not change over again and again. One whose size goes up
//! and down does, and each change-over that follows soon after the last return doubles the time for which there must be
//! room.

use std::time::{Duration, Instant};

/// Shortest time for which memory below the limit must have room for all far blocks before they become near again.
const WAIT: Duration = Duration::from_secs(3);
/// Longest such time.
const MOST_WAIT: Duration = Duration::from_secs(96);
/// A change-over comes soon if it follows within this many times the waiting time.
const SOON: u32 = 10;

/// The memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that would become resident if the program used all of its far memory.
    pub missing: u64,
    /// Bytes that are swapped out; they are part of `missing`.
    pub swapped_out: u64,
    /// Bytes that are free before the reserve of the limit is reached.
    pub free: u64,
    /// Bytes of the reserve.
    pub reserve: u64,
}

/// The next step towards near memory, if there is to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NearWish {
    /// It stays far, and pages are filled when they are touched.
    Stay,
    /// It stays far, and its swapped-out pages are fetched back.
    FetchBack,
    /// It becomes near.
    BecomeNear,
}

/// Decides when far memory becomes near again.
#[derive(Debug)]
pub struct NearAgain {
    /// Since when there is room for all pages.
    room_since: Option<Instant>,
    /// When memory last became near again.
    near_since: Option<Instant>,
    wait: Duration,
}

impl Default for NearAgain {
    fn default() -> NearAgain {
        NearAgain { room_since: None, near_since: None, wait: WAIT }
    }
}

impl NearAgain {
    /// Returns what to do with far memory at the time `now`.
    pub fn wish(&mut self, usage: Usage, now: Instant) -> NearWish {
        if usage.missing.saturating_add(usage.reserve) > usage.free {
            self.room_since = None;
            return NearWish::Stay;
        }
        let since = *self.room_since.get_or_insert(now);
        if now.saturating_duration_since(since) < self.wait {
            NearWish::Stay
        } else if usage.swapped_out > 0 {
            NearWish::FetchBack
        } else {
            NearWish::BecomeNear
        }
    }

    /// Notes that memory became near at the time `now`.
    pub fn became_near(&mut self, now: Instant) {
        (self.room_since, self.near_since) = (None, Some(now));
    }

    /// Notes that memory became far at the time `now`.
    pub fn became_far(&mut self, now: Instant) {
        let soon = |since| now.saturating_duration_since(since) < self.wait * SOON;
        self.wait = match self.near_since.take() {
            Some(since) if soon(since) => (self.wait * 2).min(MOST_WAIT),
            _ => WAIT,
        };
        self.room_since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMY: Usage = Usage { missing: 40, swapped_out: 30, free: 50, reserve: 10 };

    #[test]
    fn memory_is_fetched_back_and_then_near() {
        let (mut again, start) = (NearAgain::default(), Instant::now());
        assert_eq!(again.wish(ROOMY, start), NearWish::Stay);
        assert_eq!(again.wish(ROOMY, start + WAIT - Duration::from_millis(1)), NearWish::Stay);
        assert_eq!(again.wish(ROOMY, start + WAIT), NearWish::FetchBack);
        let fetched = Usage { missing: 10, swapped_out: 0, free: 20, ..ROOMY };
        assert_eq!(again.wish(fetched, start + WAIT), NearWish::BecomeNear);
    }

    #[test]
    fn lack_of_room_begins_the_wait_again() {
        let (mut again, start) = (NearAgain::default(), Instant::now());
        assert_eq!(again.wish(ROOMY, start), NearWish::Stay);
        // One byte is missing in addition to the reserve.
        assert_eq!(again.wish(Usage { free: 49, ..ROOMY }, start + WAIT), NearWish::Stay);
        assert_eq!(again.wish(ROOMY, start + WAIT), NearWish::Stay);
        assert_eq!(again.wish(ROOMY, start + WAIT * 2), NearWish::FetchBack);
    }

    #[test]
    fn return_is_slower_after_each_soon_change_over() {
        let (mut again, mut now) = (NearAgain::default(), Instant::now());
        let mut wait_of = |again: &mut NearAgain, near_for: Duration| {
            let began = now;
            while again.wish(ROOMY, now) == NearWish::Stay {
                now += Duration::from_secs(1);
            }
            let wait = now - began;
            again.became_near(now);
            now += near_for;
            again.became_far(now);
            wait.as_secs()
        };
        let waits: Vec<_> = (0..7).map(|_| wait_of(&mut again, Duration::ZERO)).collect();
        assert_eq!(waits, [3, 6, 12, 24, 48, 96, 96]);
        assert_eq!(wait_of(&mut again, MOST_WAIT * SOON), 96);
        assert_eq!(wait_of(&mut again, Duration::ZERO), 3);
    }
}
