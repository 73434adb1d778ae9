//! Samples which parts of the heap the program uses, so that the coldest become far first when the limit comes near.
//!
//! ```text
//!   half of the limit is used ─► all pages are made old ─► a second or more ─► which are young? ─► made old again …
//! ```
//! A page becomes young when the processor uses it. The kernel makes the pages of a range old on request, but says only
//! how many bytes of a whole mapping are young (`Referenced` in `/proc/PID/smaps`). So for each sample the heap is
//! divided into mappings for a moment. Contents, large pages and threads that use them are not affected.

use crate::heap::LargeHeap;
use crate::limited::LimitedMemory;
use crate::smaps;
use core::convert::Infallible;
use core::ops::Range;
use core::time::Duration;
use largesse_pages::SPAN;
use largesse_policy::{Coldness, SpanAges};
use std::time::Instant;

/// Largest number of parts into which the heap is divided.
const PARTS: usize = 512;
/// Shortest time between two samples.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// Least time between two samples, as a multiple of the time that a sample takes.
const REST: u32 = 200;
/// A part counts as used if more than one part in this number of its resident bytes is young. A collector that marks
/// the headers of blocks makes less than that young.
const SHARE: u64 = 4;
/// No samples are taken of a process with more mappings: the kernel permits 65,530 by default.
const MOST_MAPPINGS: usize = 16_384;

/// Samples the heap of a process with a limit, in the helper thread.
#[derive(Debug, Default)]
pub(crate) struct HeapSamples {
    ages: SpanAges,
    /// When all pages were made old, and how long the sample took; `None` before the first time.
    last: Option<(Instant, Duration)>,
    /// Whether there was a sample of a second or more.
    is_sampled: bool,
    /// Whether the kernel refuses samples.
    refused: bool,
}

impl HeapSamples {
    /// Takes a sample of the heap on near `memory`, if it is time for one.
    pub(crate) fn step(&mut self, heap: &LargeHeap, memory: &LimitedMemory) {
        let is_time = |(at, took): (Instant, Duration)| at.elapsed() >= LEAST_PAUSE.max(took * REST);
        if !self.refused && self.last.is_none_or(is_time) {
            let began = Instant::now();
            let runs = warm_runs(heap);
            if self.last.is_some() {
                self.sample(&runs, memory, true);
                self.is_sampled = true;
            }
            self.refused |= runs.iter().any(|run| !memory.forget_use(run));
            let now = Instant::now();
            self.last = Some((now, now - began));
        }
    }

    /// Returns the age of each span, with a last sample, for a heap that is about to become far.
    pub(crate) fn at_change_over(&mut self, heap: &LargeHeap, memory: &LimitedMemory) -> &dyn Coldness {
        if let Some((at, _)) = self.last.take().filter(|_| !self.refused) {
            let long = !self.is_sampled || at.elapsed() >= LEAST_PAUSE;
            self.sample(&warm_runs(heap), memory, long);
        }
        &self.ages
    }

    /// Notes which spans were used since all pages were made old, which was `long` ago or not.
    fn sample(&mut self, runs: &[Range<usize>], memory: &LimitedMemory, long: bool) {
        let spans: usize = runs.iter().map(Range::len).sum();
        let part = spans.div_ceil(PARTS).max(1);
        let parts = || runs.iter().flat_map(|run| parts_of(run, part));
        let apart =
            parts().filter(|it| it.start / part % 2 == 1).try_for_each(|it| memory.set_apart(&it, true));
        let mappings = smaps::own();
        let end = runs.last().map_or(0, |run| run.end);
        let joined = memory.set_apart(&(0..end), false);
        let (Some(()), Some(mappings), Some(())) = (apart, mappings, joined) else {
            self.refused = true;
            return;
        };
        for mapping in &mappings {
            if let Some(spans) = spans_of(&mapping.at, memory.start(), end) {
                self.ages.sampled(spans, mapping.young > mapping.resident / SHARE, long);
            }
        }
        self.refused |= mappings.len() > MOST_MAPPINGS;
    }
}

fn warm_runs(heap: &LargeHeap) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let Ok(()) = heap.each_warm_run::<Infallible>(|run| {
        runs.push(run);
        Ok(())
    });
    runs
}

/// Cuts a run of spans at the multiples of `part`.
fn parts_of(run: &Range<usize>, part: usize) -> impl Iterator<Item = Range<usize>> {
    let Range { mut start, end } = run.clone();
    core::iter::from_fn(move || {
        let from = (start < end).then_some(start)?;
        start = end.min((from + 1).next_multiple_of(part));
        Some(from..start)
    })
}

/// Returns the spans of a mapping that lie in the first `spans` spans from the address `start` on; `None` if none do.
fn spans_of(at: &Range<usize>, start: usize, spans: usize) -> Option<Range<usize>> {
    let (from, to) = (at.start.max(start), at.end.min(start + spans * SPAN));
    (from < to).then(|| (from - start) / SPAN..(to - start).div_ceil(SPAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_spans_of_the_heap() {
        let at = 40 * SPAN..42 * SPAN;
        assert_eq!(spans_of(&at, 39 * SPAN, 2), Some(1..2));
        assert_eq!(spans_of(&at, 42 * SPAN, 2), None);
    }

    #[test]
    fn parts_end_at_multiples() {
        let parts: Vec<_> = parts_of(&(3..9), 4).collect();
        assert_eq!(parts, [3..4, 4..8, 8..9]);
    }
}
