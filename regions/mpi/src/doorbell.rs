//! Keeps a server awake while its memory is used through the network.

use crate::pace::AWAKE;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// One server's doorbell, as the ringing process knows it.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    /// Time of the last ring in microseconds, 0 if there was none.
    rung: AtomicU64,
    /// The byte that was last written to the server's doorbell. The server stays awake while that byte changes.
    byte: AtomicU8,
}

impl Doorbell {
    /// Returns the byte to write to the server's doorbell at the time `now`, which may be of any clock. Returns `None`
    /// if the server is still awake. Consecutive bytes differ.
    pub(crate) fn ring(&self, now: Duration) -> Option<u8> {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX).max(1);
        let rung = self.rung.load(Ordering::Relaxed); // Relaxed: a second ring is harmless
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
    fn only_sleeping_servers_are_rung() {
        let (doorbell, mut seen, mut now) = (Doorbell::default(), 0, AWAKE);
        // Each byte of a clock repeats after some round number of microseconds.
        for pause in (0..600).map(|round| (AWAKE / 2).max(Duration::from_micros(round % 3 * 65_536))) {
            let byte = doorbell.ring(now);
            assert!(byte.is_some_and(|byte| byte != seen), "after {pause:?}");
            assert_eq!(doorbell.ring(now + AWAKE / 4), None);
            (seen, now) = (byte.unwrap_or(0), now + pause);
        }
    }
}
