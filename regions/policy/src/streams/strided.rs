//! Follows strided streams. Such a stream uses *rows*, which are pieces of memory at a constant distance, with unused
//! pages between them.

use super::fault_context::{Access, FaultContext};
use core::ops::Range;

/// Largest number of steps over which a stride is averaged. The more steps, the further ahead rows can be predicted.
const MAX_SAMPLES: f64 = 256.0;
/// The middle and the end of a page, measured in pages from its start.
pub(super) const MIDDLE: f64 = 0.5;
const END: f64 = 0.999;
/// A fault belongs to a stream if its distance from the expected row is at most half a page for strides below `NEAR`
/// pages, and at most `SLACK` pages for longer strides.
pub(super) const NEAR: f64 = 4.0;
pub(super) const SLACK: f64 = 1.5;
/// Distances of a fault from the start of its row, in pages, which show that the row is wider than two pages.
const WIDE: Range<f64> = 1.5..3.5;

/// The position, stride and row length of a strided stream, estimated from its faults.
#[derive(Clone, Copy, Debug)]
pub(super) struct StridedStream {
    /// Estimated position of the start of the last row, in pages from page 0. It need not be a whole number: a row may
    /// start inside a page.
    at: f64,
    /// Largest error of `at`, in pages.
    off: f64,
    /// Length of a row beyond the page in which the row starts, in pages.
    reach: f64,
    /// Distance between the starts of two successive rows, in pages. It need not be a whole number.
    pub(super) stride: f64,
    /// Number of steps over which the stride was averaged, at most [`MAX_SAMPLES`].
    steps: f64,
    /// Number of steps, of those in `steps`, after which the program also used the pages next to the row.
    wide: f64,
    /// How the stream uses the pages around its rows: densely if rows are so wide that they are pieces of a scanned
    /// array.
    pub(super) access: Access,
    /// Whether the stream consists of several parallel sequential scans. A fault that no scan can have caused does not
    /// belong to such a stream.
    in_scan: bool,
}

impl StridedStream {
    /// Starts a stream at `fault`, which two earlier faults precede at distances of `stride` pages.
    pub(super) fn new(fault: &FaultContext, stride: f64) -> StridedStream {
        let in_scan = fault.is_part_of_scan();
        let access = if in_scan { Access::Dense } else { Access::Strided };
        let at = fault.page as f64 + MIDDLE;
        StridedStream { at, off: MIDDLE, reach: 0.0, stride, steps: 2.0, wide: 0.0, access, in_scan }
    }

    /// Returns the number of steps from the last row to the row that is nearest to the middle of `page`, and the
    /// distance in pages from that row to the middle of `page`.
    fn nearest(&self, page: usize) -> (f64, f64) {
        let distance = page as f64 + MIDDLE - self.at;
        let steps = (distance / self.stride).round();
        (steps, distance - steps * self.stride)
    }

    /// Returns the number of steps from the last row to a fault, if the fault is in a row of the stream. `prefetched`
    /// is the number of rows that were prefetched, whose pages cause no faults. A long stream may skip further rows,
    /// because their pages may still be resident.
    pub(super) fn steps_to(&self, fault: &FaultContext, prefetched: usize) -> Option<f64> {
        let (steps, off) = self.nearest(fault.page);
        let slack = match self.access {
            _ if self.stride.abs() < NEAR => MIDDLE,
            // The first pages of a wide row may be resident, so that the fault is on a later one.
            Access::Dense => SLACK.max(fault.units[Access::Dense as usize] as f64 - MIDDLE),
            Access::Strided => SLACK,
        };
        let farthest = (prefetched + 2) as f64 + self.steps;
        let may = fault.is_part_of_scan() || !self.in_scan;
        (may && (0.0..=farthest).contains(&steps) && off.abs() <= slack).then_some(steps)
    }

    /// Notes whether `fault` shows that the program continued from a row into the pages next to it.
    pub(super) fn notice(&mut self, fault: &FaultContext) {
        let (steps, off) = self.nearest(fault.page);
        let resident_neighbours =
            fault.resident_neighbours[usize::from(off < 0.0)] && WIDE.contains(&off.abs());
        if resident_neighbours && (0.0..=self.steps).contains(&steps) {
            self.wide += 1.0;
            // A single such fault may be a coincidence. More than half of the steps must have one.
            if self.wide >= 2.0 && self.wide * 2.0 > self.steps {
                self.access = Access::Dense;
            }
        }
    }

    /// Notes that the stream has moved by `steps` steps, to the row (the piece of memory used at one step) of `fault`,
    /// and corrects the estimates of position and stride.
    ///
    /// A fault does not tell where in its page the row starts, but each fault narrows the estimate, so that fewer pages
    /// are prefetched in vain. The row starts in the faulting page, or possibly in the page before if that is resident.
    pub(super) fn follow(&mut self, fault: &FaultContext, steps: f64) {
        let expected = self.at + steps * self.stride;
        let off = (self.off + steps * MIDDLE / self.steps).min(MIDDLE);
        let page = fault.page as f64;
        let mut first = page;
        self.steps = (self.steps + steps).min(MAX_SAMPLES);
        if fault.resident_neighbours[0] && page > expected {
            self.reach = (page - (expected + off)).max(self.reach).min(1.0);
            first -= self.reach;
        } else if steps > 0.0 {
            self.reach *= 1.0 - 1.0 / MAX_SAMPLES;
        } else {
            return;
        }
        let (low, high) = ((expected - off).max(first), (expected + off).min(page + END));
        (self.at, self.off) = if low < high {
            ((low + high) / 2.0, (high - low) / 2.0)
        } else {
            (expected.clamp(first, page + END), MIDDLE / 4.0)
        };
        self.stride += (self.at - expected) / self.steps;
    }

    /// Returns the pages of the row that follows `steps` steps after the last one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "page numbers are exact as f64, and this one is not below 0"
    )]
    pub(super) fn pages(&self, steps: usize) -> Option<Range<usize>> {
        let start = self.at + steps as f64 * self.stride;
        (start >= 0.0).then(|| start as usize..(start + self.reach) as usize + 1)
    }
}
