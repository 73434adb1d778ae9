//! Which memory is cold when all of a heap becomes far memory at once.
//!
//! ```text
//!   sample: every span is made old ─► the program runs ─► sample: which spans were used? ─► age 0, the others 1 more
//!     ─► change-over: the oldest spans are evicted first (`Replacement::adopt`)
//! ```
//! From then on faults tell which pages are used. Before, no fault does, so that the caller samples: a sample covers
//! the time since the one before.

use core::fmt::Debug;
use core::ops::Range;

/// The age of memory that becomes far. The baseline is [`Unsampled`].
pub trait Coldness: Debug {
    /// Returns the number of samples since the one that last found the span in use, at most 255: 0 if that was the
    /// latest one, or if nothing is known.
    fn age(&self, span: usize) -> u8;
}

/// Knows nothing: all memory has the same age.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsampled;

impl Coldness for Unsampled {
    fn age(&self, _span: usize) -> u8 {
        0
    }
}

/// The ages of spans by samples.
#[derive(Clone, Debug, Default)]
pub struct SpanAges(Vec<u8>);

impl SpanAges {
    /// Notes whether spans were used since the sample before. That they were not means nothing unless the time since
    /// then was `long`.
    pub fn sampled(&mut self, spans: Range<usize>, used: bool, long: bool) {
        if self.0.len() < spans.end {
            self.0.resize(spans.end, 0);
        }
        for age in &mut self.0[spans] {
            *age = if used { 0 } else { age.saturating_add(u8::from(long)) };
        }
    }
}

impl Coldness for SpanAges {
    fn age(&self, span: usize) -> u8 {
        self.0.get(span).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_spans_grow_older() {
        let mut ages = SpanAges::default();
        for round in 0..300 {
            ages.sampled(0..2, false, true);
            ages.sampled(2..4, round % 2 == 0, true);
        }
        ages.sampled(0..1, true, false);
        ages.sampled(1..4, false, false);
        assert_eq!([0, 1, 2, 3, 4].map(|span| ages.age(span)), [0, 255, 1, 1, 0]);
        assert_eq!(Unsampled.age(0), 0);
    }
}
