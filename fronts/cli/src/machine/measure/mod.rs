//! Measuring memory: bounded in bytes and in time, every figure with its spread, none that cannot be.

pub(super) mod bandwidth;
pub(super) mod chain;
pub(super) mod cores;
pub(super) mod ladder;
pub(super) mod memory;
mod team;

use serde::Serialize;
use std::time::{Duration, Instant};

/// How often everything is measured: the best counts, what others do on the machine only takes away.
pub(super) const REPEATS: usize = 5;

/// What may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes, at one time.
    pub(super) memory: u64,
    /// No measurement begins later.
    pub(super) until: Instant,
}

impl Limits {
    pub(super) fn new(memory: u64, seconds: u64) -> Limits {
        Limits { memory, until: Instant::now() + Duration::from_secs(seconds) }
    }

    pub(super) fn time_is_up(&self) -> bool {
        Instant::now() >= self.until
    }
}

/// The best of some measurements, and how far the others were from it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) best: f64,
    /// From best to worst, over the best: below 0 where more is better.
    pub(super) spread: f64,
    pub(super) runs: usize,
    /// More than the machine can do: not a measurement of memory.
    pub(super) impossible: bool,
}

impl Figure {
    /// Of rates: the highest is the best, and none can be above `limit`.
    pub(super) fn highest(rates: &[f64], limit: f64) -> Option<Figure> {
        let best = rates.iter().copied().reduce(f64::max)?;
        let worst = rates.iter().copied().reduce(f64::min)?;
        let impossible = !best.is_finite() || best > limit;
        Some(Figure { best, spread: (worst - best) / best, runs: rates.len(), impossible })
    }

    /// Of times: the lowest is the best, and none can be below `limit`.
    pub(super) fn lowest(times: &[f64], limit: f64) -> Option<Figure> {
        let best = times.iter().copied().reduce(f64::min)?;
        let worst = times.iter().copied().reduce(f64::max)?;
        Some(Figure { best, spread: (worst - best) / best, runs: times.len(), impossible: best < limit })
    }

    /// `28.7 -3%` of a rate, `120 +25%` of a time, with `?` for what cannot be.
    pub(super) fn text(&self) -> String {
        let doubt = if self.impossible { "?" } else { "" };
        let digits = if self.best < 100.0 { 1 } else { 0 };
        format!("{:.digits$}{doubt} {:+.0}%", self.best, self.spread * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_shown_with_what_the_worst_was_below_it() {
        let figure = Figure::highest(&[20.0, 25.0, 24.0], 100.0).unwrap();
        assert_eq!((figure.best, figure.runs, figure.impossible), (25.0, 3, false));
        assert_eq!(figure.text(), "25.0 -20%");
        let figure = Figure::lowest(&[150.0, 120.0], 1.0).unwrap();
        assert_eq!(figure.text(), "120 +25%");
        assert_eq!(Figure::highest(&[], 1.0), None);
    }

    #[test]
    fn what_cannot_be_is_marked() {
        assert!(Figure::highest(&[152.0], 118.0).unwrap().impossible);
        assert!(Figure::highest(&[f64::INFINITY], 118.0).unwrap().impossible);
        assert!(Figure::lowest(&[0.1], 0.2).unwrap().impossible);
        assert_eq!(Figure::highest(&[152.0], 118.0).unwrap().text(), "152? +0%");
    }
}
