//! Prefetch by streams: sequences of faults at a constant distance.
//!
//! Numerical programs traverse arrays with strides, and several arrays at once. When a fault occurs where a known
//! stream continues, the stream prefetches some transfer units. Three recent faults at equal distances start a stream;
//! four are needed if several sequential scans run in parallel.
//!
//! There are two kinds of streams, which want transfer units of different sizes ([`Access`]):
//!
//! ```text
//!   sequential, unit by unit    |####|####|####|####|     all of a unit is used: large units
//!   strided, row by row         |#...|.#..|...#|....|     the pages between are not used: small units
//! ```
//!
//! In a sequential scan, the pages of the transfer unit before the faulting page were used shortly before, so that they
//! are resident. Several parallel scans that take turns are strided by the order of their faults, and sequential by
//! their use of units.

mod fault_context;
mod prefetch;
mod strided;

use core::ops::Range;
pub use fault_context::{Access, FaultContext};
pub use prefetch::{NoPrefetch, Prefetch};
use strided::StridedStream;

/// Number of recent faults that are remembered.
const RECENT: usize = 16;
/// Largest number of streams that are tracked at once.
const STREAMS: usize = 8;
/// Largest number of transfer units that one stream prefetches.
const MAX_DEPTH: usize = 32;
/// Smallest distance between two steps of a strided stream, in pages.
const MIN_STRIDE: f64 = 2.0;

/// The rule that says at which pages a stream continues.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// The stream continues at the next transfer unit in one direction. Its last fault was in the unit of `page`.
    Sequential { page: usize, forward: bool },
    /// The stream continues at the next row: the pages that it uses one stride further.
    Strided(StridedStream),
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    pattern: Pattern,
    /// Number of steps beyond the last fault (units or rows) that were prefetched, so that no fault is expected there.
    prefetched: usize,
    /// Number of steps (units or rows) to prefetch the next time.
    depth: usize,
    /// When the last fault of the stream occurred, as a number of faults since the start.
    used: u64,
}

impl Stream {
    fn access(&self) -> Access {
        match self.pattern {
            Pattern::Sequential { .. } => Access::Dense,
            Pattern::Strided(strided) => strided.access,
        }
    }

    /// Returns the distance of one step, in pages.
    fn stride(&self, unit: usize) -> f64 {
        match self.pattern {
            Pattern::Sequential { .. } => unit as f64,
            Pattern::Strided(strided) => strided.stride.abs(),
        }
    }

    /// Returns the number of steps from the stream's last fault to `fault`, if the stream may have caused `fault`.
    fn steps_to(&self, fault: &FaultContext) -> Option<f64> {
        match self.pattern {
            Pattern::Sequential { page, forward } => {
                let unit = fault.units[Access::Dense as usize];
                let [from, to] = [page, fault.page].map(|page| page / unit);
                let steps = if forward { to.checked_sub(from) } else { from.checked_sub(to) };
                // The larger unit of a leader block may have filled one step more.
                let meets = |&steps: &usize| fault.is_scan(forward) && steps <= self.prefetched + 2;
                steps.filter(meets).map(|steps| steps as f64)
            }
            Pattern::Strided(strided) => strided.steps_to(fault, self.prefetched),
        }
    }

    /// Notes that the stream has moved by `steps` steps, to the position of `fault`.
    fn follow(&mut self, fault: &FaultContext, steps: f64) {
        match &mut self.pattern {
            Pattern::Sequential { page, .. } => *page = fault.page,
            Pattern::Strided(strided) => strided.follow(fault, steps),
        }
    }

    /// Returns the pages that the stream is expected to use `steps` steps after its last fault; `None` if they would
    /// have negative numbers.
    fn pages(&self, steps: usize, unit: usize) -> Option<Range<usize>> {
        match self.pattern {
            Pattern::Sequential { page, forward } => {
                let from = page / unit;
                let to = if forward { Some(from + steps) } else { from.checked_sub(steps) };
                to.map(|to| to * unit..(to + 1) * unit)
            }
            Pattern::Strided(strided) => strided.pages(steps),
        }
    }
}

/// The streams of a program, and its recent faults.
#[derive(Debug, Default)]
pub struct Streams {
    recent: [Option<usize>; RECENT],
    at: usize,
    streams: Vec<Stream>,
    clock: u64,
}

impl Streams {
    /// Makes a set without streams.
    #[must_use]
    pub fn new() -> Streams {
        Streams { streams: Vec::with_capacity(STREAMS), ..Streams::default() }
    }

    /// Observes a fault and returns how the pages around it are used.
    ///
    /// If the fault continues a stream, calls `prefetch` for the next transfer units of the stream, with the pages of
    /// each unit that the stream will use, at most `most` pages in total. Calls `passed` for the pages that the stream
    /// had prefetched, and that the program has used without a fault since the stream's last fault.
    pub fn on_fault(
        &mut self,
        fault: &FaultContext,
        most: usize,
        mut passed: impl FnMut(Range<usize>, Access),
        mut prefetch: impl FnMut(Range<usize>, Access),
    ) -> Access {
        self.clock += 1;
        let now = self.clock;
        for stream in &mut self.streams {
            if let Pattern::Strided(strided) = &mut stream.pattern {
                strided.notice(fault);
            }
        }
        let mut access = Access::Dense;
        if let Some((stream, steps)) = self.stream_to(fault) {
            access = stream.access();
            let unit = fault.units[access as usize];
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few, at least 0")]
            let between = 1..steps as usize;
            between.filter_map(|step| stream.pages(step, unit)).for_each(|pages| passed(pages, access));
            stream.follow(fault, steps);
            stream.prefetched = stream.depth.min(most / unit);
            stream.depth = (stream.depth * 2).min(MAX_DEPTH);
            let next = 1..=stream.prefetched;
            next.filter_map(|step| stream.pages(step, unit)).for_each(|pages| prefetch(pages, access));
            stream.used = now;
        } else if let Some(pattern) = self.pattern_to(fault) {
            let stream = Stream { pattern, prefetched: 0, depth: 2, used: now };
            access = stream.access();
            if self.streams.len() < STREAMS {
                self.streams.push(stream);
            } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
                *oldest = stream;
            }
        }
        self.recent[self.at] = Some(fault.page);
        self.at = (self.at + 1) % RECENT;
        access
    }

    /// Returns the stream that `fault` continues, and the number of steps since the stream's last fault. If there are
    /// several such streams, returns the one with the smallest stride, because the others skip some of its units.
    fn stream_to(&mut self, fault: &FaultContext) -> Option<(&mut Stream, f64)> {
        let unit = fault.units[Access::Dense as usize];
        let all = self.streams.iter_mut();
        let leading = all.filter_map(|stream| Some((stream.steps_to(fault)?, stream)));
        let nearest = leading.min_by(|(_, one), (_, other)| one.stride(unit).total_cmp(&other.stride(unit)));
        nearest.map(|(steps, stream)| (stream, steps))
    }

    /// Returns the pattern that recent faults form with `fault`. If there are several, returns the one with the
    /// smallest stride.
    fn pattern_to(&self, fault: &FaultContext) -> Option<Pattern> {
        let unit = fault.units[Access::Dense as usize] as f64;
        let stride = self.stride_to(fault, unit)?;
        let forward = stride > 0.0;
        if stride.abs() < MIN_STRIDE || stride.abs() < 1.5 * unit && fault.is_scan(forward) {
            return Some(Pattern::Sequential { page: fault.page, forward });
        }
        // A fault next to a recent one is within a row, not at the start of one. If neighbours of the page have been
        // resident for long, that may be a coincidence, but several recent faults at the same distance are none.
        let starts = match fault.is_part_of_scan() {
            true => !self.was_adjacent(fault) && self.was_at(fault, 3.0 * stride),
            false => fault.resident_neighbours == [false; 2],
        };
        starts.then(|| Pattern::Strided(StridedStream::new(fault, stride)))
    }

    /// Returns the smallest stride in pages with an earlier fault one stride before `fault`, and one two strides before
    /// it.
    fn stride_to(&self, fault: &FaultContext, unit: f64) -> Option<f64> {
        let here = fault.page as f64;
        let recent = || self.recent.iter().flatten().map(|&page| page as f64);
        let strides = recent().filter_map(|before| {
            let step = here - before;
            let slack = match fault.is_scan(step > 0.0) {
                _ if step.abs() < strided::NEAR => strided::MIDDLE,
                true => strided::SLACK.max(unit - strided::MIDDLE),
                false => strided::SLACK,
            };
            let first = recent().find(|first| (before - step - first).abs() <= slack)?;
            (step != 0.0 && first != before).then_some((here - first) / 2.0)
        });
        strides.min_by(|one, other| one.abs().total_cmp(&other.abs()))
    }

    /// Returns whether a recent fault was `distance` pages before `fault`.
    fn was_at(&self, fault: &FaultContext, distance: f64) -> bool {
        let mut recent = self.recent.iter().flatten();
        recent.any(|&other| (fault.page as f64 - other as f64 - distance).abs() <= strided::SLACK)
    }

    /// Returns whether a recent fault was in a transfer unit next to that of `fault`.
    fn was_adjacent(&self, fault: &FaultContext) -> bool {
        let FaultContext { page, units: [dense, strided], .. } = *fault;
        let [before, behind] = [page.saturating_sub(1), page + 1].map(|page| page / dense);
        self.recent.iter().flatten().any(|&other| {
            let scanned = |unit, forward| other / dense == unit && fault.is_scan(forward);
            other.abs_diff(page) <= strided || scanned(before, true) || scanned(behind, false)
        })
    }
}

impl Prefetch for Streams {
    fn on_fault(
        &mut self,
        fault: &FaultContext,
        most: usize,
        passed: &mut dyn FnMut(Range<usize>, Access),
        prefetch: &mut dyn FnMut(Range<usize>, Access),
    ) -> Access {
        Streams::on_fault(self, fault, most, passed, prefetch)
    }
}

#[cfg(test)]
mod tests;
