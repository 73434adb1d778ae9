//! Measures the latency and bandwidth of the machine's memory, with a bounded amount of memory and time. Each figure
//! has its spread, and physically impossible figures are marked.

pub(super) mod bandwidth;
pub(super) mod chain;
pub(super) mod cores;
pub(super) mod ladder;
pub(super) mod memory;
mod team;

use serde::Serialize;
use std::time::{Duration, Instant};

/// Number of repetitions, of which the best counts, since other programs can only slow a measurement down.
pub(super) const REPEATS: usize = 5;

/// The bounds of all measurements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes of memory in use at a time.
    pub(super) memory: u64,
    /// Time after which no measurement begins.
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

/// The best of several measurements, and its distance from the worst.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) best: f64,
    /// Worst minus best, divided by the best: negative for rates.
    pub(super) spread: f64,
    pub(super) runs: usize,
    /// Whether the best is beyond the limit of the machine, and so no measurement of memory.
    pub(super) impossible: bool,
}

impl Figure {
    /// Returns the figure of rates, of which the highest is the best and values above `limit` are impossible.
    pub(super) fn highest(rates: &[f64], limit: f64) -> Option<Figure> {
        let best = rates.iter().copied().reduce(f64::max)?;
        let worst = rates.iter().copied().reduce(f64::min)?;
        let impossible = !best.is_finite() || best > limit;
        Some(Figure { best, spread: (worst - best) / best, runs: rates.len(), impossible })
    }

    /// Returns the figure of times, of which the lowest is the best and values below `limit` are impossible.
    pub(super) fn lowest(times: &[f64], limit: f64) -> Option<Figure> {
        let best = times.iter().copied().reduce(f64::min)?;
        let worst = times.iter().copied().reduce(f64::max)?;
        Some(Figure { best, spread: (worst - best) / best, runs: times.len(), impossible: best < limit })
    }

    /// Returns the text, such as `28.7 -3%` for a rate, `120 +25%` for a time, or `152? +0%` for an impossible rate.
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
    fn figure_shows_best_and_spread() {
        let figure = Figure::highest(&[20.0, 25.0, 24.0], 100.0).unwrap();
        assert_eq!((figure.best, figure.runs, figure.impossible), (25.0, 3, false));
        assert_eq!(figure.text(), "25.0 -20%");
        let figure = Figure::lowest(&[150.0, 120.0], 1.0).unwrap();
        assert_eq!(figure.text(), "120 +25%");
        assert_eq!(Figure::highest(&[], 1.0), None);
    }

    #[test]
    fn impossible_figures_are_marked() {
        assert!(Figure::highest(&[152.0], 118.0).unwrap().impossible);
        assert!(Figure::highest(&[f64::INFINITY], 118.0).unwrap().impossible);
        assert!(Figure::lowest(&[0.1], 0.2).unwrap().impossible);
        assert_eq!(Figure::highest(&[152.0], 118.0).unwrap().text(), "152? +0%");
    }
}
