//! Decides by size which requests are served.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Smallest value of `min` in bytes. For smaller blocks, rounding up to a granule would waste too much.
pub const SMALLEST_MIN: usize = 64 << 10;

/// The limits on size by which requests are routed, which may change while the program runs. Reading each takes one
/// load.
#[derive(Debug)]
#[repr(C)]
pub struct Routing {
    /// Size in bytes from which requests are accepted; `usize::MAX` while the heap is disabled, and 0 while small
    /// requests are accepted, too. It is the first field, which the exported functions read.
    from: AtomicUsize,
    min: AtomicUsize,
    max: AtomicUsize,
    small: AtomicBool,
}

/// The error for limits below [`SMALLEST_MIN`] or in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLimits {
    /// The requested lower limit in bytes.
    pub min: usize,
    /// The requested upper limit in bytes.
    pub max: usize,
}

impl Routing {
    /// Creates a routing with limits in bytes.
    #[must_use]
    pub const fn new(min: usize, max: usize, enabled: bool) -> Routing {
        let from = if enabled { min } else { usize::MAX };
        Routing {
            from: AtomicUsize::new(from),
            min: AtomicUsize::new(min),
            max: AtomicUsize::new(max),
            small: AtomicBool::new(false),
        }
    }

    /// Returns whether a request of `size` bytes is accepted.
    // Relaxed throughout: limits are independent; a request that races with a change may be routed either way.
    #[inline]
    #[must_use]
    pub fn takes(&self, size: usize) -> bool {
        size >= self.from.load(Ordering::Relaxed) && size <= self.max.load(Ordering::Relaxed)
    }

    /// Returns the limits in force: min and max in bytes, and whether requests are accepted.
    #[must_use]
    pub fn limits(&self) -> (usize, usize, bool) {
        let enabled = self.from.load(Ordering::Relaxed) != usize::MAX;
        (self.min.load(Ordering::Relaxed), self.max.load(Ordering::Relaxed), enabled)
    }

    /// Changes the limits, in bytes.
    pub fn set(&self, min: usize, max: usize) -> Result<(), BadLimits> {
        if min < SMALLEST_MIN || min > max {
            return Err(BadLimits { min, max });
        }
        self.min.store(min, Ordering::Relaxed);
        self.max.store(max, Ordering::Relaxed);
        let while_on = |from| (from != usize::MAX).then_some(self.least());
        let _ = self.from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, while_on);
        Ok(())
    }

    /// Sets whether requests are accepted.
    pub fn enable(&self, on: bool) {
        let from = if on { self.least() } else { usize::MAX };
        self.from.store(from, Ordering::Relaxed);
    }

    /// Accepts requests below `min` from now on, too, while requests are accepted.
    pub fn accept_small(&self) {
        self.small.store(true, Ordering::Relaxed);
        self.enable(self.limits().2);
    }

    /// Returns the size in bytes from which requests are accepted while they are.
    fn least(&self) -> usize {
        if self.small.load(Ordering::Relaxed) { 0 } else { self.min.load(Ordering::Relaxed) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_within_the_limits_are_taken() {
        let routing = Routing::new(1 << 20, 4 << 20, true);
        for (size, want) in
            [(0, false), ((1 << 20) - 1, false), (1 << 20, true), (4 << 20, true), ((4 << 20) + 1, false)]
        {
            assert_eq!(routing.takes(size), want, "{size}");
        }
    }

    #[test]
    fn disabled_routing_keeps_its_limits() {
        let routing = Routing::new(1 << 20, 4 << 20, true);
        routing.enable(false);
        assert!(!routing.takes(2 << 20));
        routing.set(2 << 20, 8 << 20).unwrap();
        assert_eq!(routing.limits(), (2 << 20, 8 << 20, false));
        assert!(!routing.takes(2 << 20));
        routing.enable(true);
        assert!(routing.takes(2 << 20));
    }

    #[test]
    fn small_requests_are_taken_while_enabled() {
        let routing = Routing::new(1 << 20, 4 << 20, false);
        routing.accept_small();
        assert!(!routing.takes(24));
        routing.enable(true);
        routing.set(2 << 20, 8 << 20).unwrap();
        assert!(routing.takes(0) && routing.takes(8 << 20) && !routing.takes((8 << 20) + 1));
        assert_eq!(routing.limits(), (2 << 20, 8 << 20, true));
        assert_eq!(core::mem::offset_of!(Routing, from), 0, "the exported functions read the first word");
    }

    #[test]
    fn bad_limits_change_nothing() {
        let routing = Routing::new(1 << 20, 4 << 20, true);
        for (min, max) in [(2 << 20, 1 << 20), (0, 1 << 20), (SMALLEST_MIN - 1, usize::MAX)] {
            assert_eq!(routing.set(min, max), Err(BadLimits { min, max }));
        }
        assert_eq!(routing.limits(), (1 << 20, 4 << 20, true));
    }
}
