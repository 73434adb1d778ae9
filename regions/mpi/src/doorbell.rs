//! Waking a server whose memory is about to be used from afar.

use crate::pace::AWAKE;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// The bell of one server, seen by whoever rings.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    /// When it was last rung, in microseconds; 0: never.
    rung: AtomicU64,
    /// What the server sees; it stays awake when that changes.
    byte: AtomicU8,
}

impl Bell {
    /// What to write to it `now`, by any clock; `None`: its owner is awake. Two rings in a row differ.
    pub(crate) fn ring(&self, now: Duration) -> Option<u8> {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let rung = self.rung.load(Ordering::Relaxed); // Relaxed: a second ring does no harm
        if rung != 0 && u128::from(now.saturating_sub(rung)) < AWAKE.as_micros() / 2 {
            return None;
        }
        self.rung.store(now, Ordering::Relaxed);
        Some(self.byte.fetch_add(1, Ordering::Relaxed).wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_awake_is_not_rung_for_and_each_ring_is_seen() {
        let (bell, mut seen, mut now) = (Bell::default(), 0, AWAKE);
        // Any byte of a clock is the same again after some round number of microseconds.
        for pause in (0..600).map(|round| (AWAKE / 2).max(Duration::from_micros(round % 3 * 65_536))) {
            let byte = bell.ring(now);
            assert!(byte.is_some_and(|byte| byte != seen), "after {pause:?}");
            assert_eq!(bell.ring(now + AWAKE / 4), None);
            (seen, now) = (byte.unwrap_or(0), now + pause);
        }
    }
}
