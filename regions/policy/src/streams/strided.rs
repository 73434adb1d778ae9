//! Rows: pieces of memory at a constant distance, with others between them that nobody touches.

use super::{Access, Fault, LONG};
use core::ops::Range;

/// The middle of a page and its end, from its start.
pub(super) const MIDDLE: f64 = 0.5;
const END: f64 = 0.999;
/// Steps between pages that lie as near as that may be off by less than half of one, longer ones by this much.
pub(super) const NEAR: f64 = 4.0;
pub(super) const SLACK: f64 = 1.5;
/// A row that is wider than two pages goes on so far from where it starts.
const WIDE: Range<f64> = 1.5..3.5;

/// Rows that somebody goes along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Where the last one starts, in pages: rows seldom start where pages do, and what a fault says is the page alone.
    at: f64,
    /// So far it may be off.
    off: f64,
    /// How far a row reaches, in pages, beyond the page that it starts in as well.
    reach: f64,
    /// Pages from one to the next: rows seldom end where pages do.
    pub(super) stride: f64,
    /// Steps that the stride was averaged over, at most [`LONG`].
    steps: f64,
    /// Of these, so many in which somebody went on through what lies beside the row.
    wide: f64,
    /// How the pages are used. Wide rows are pieces of an array that is walked through.
    pub(super) access: Access,
    /// They are walks side by side: who comes from somewhere else is in none of them.
    walks: bool,
}

impl Rows {
    /// A row starts at a fault, and those before it lay at such a distance.
    pub(super) fn new(fault: &Fault, stride: f64) -> Rows {
        let walks = fault.is_of_a_walk();
        let access = if walks { Access::Dense } else { Access::Strided };
        let at = fault.page as f64 + MIDDLE;
        Rows { at, off: MIDDLE, reach: 0.0, stride, steps: 2.0, wide: 0.0, access, walks }
    }

    /// The nearest row to the middle of a page: the steps that lead there, and how far the page is off.
    fn nearest(&self, page: usize) -> (f64, f64) {
        let distance = page as f64 + MIDDLE - self.at;
        let steps = (distance / self.stride).round();
        (steps, distance - steps * self.stride)
    }

    /// How many steps lead to a fault, if it is in one of the rows; so many were `foreseen`. Who went far is known again
    /// farther on: rows between may have been here.
    pub(super) fn steps_to(&self, fault: &Fault, foreseen: usize) -> Option<f64> {
        let (steps, off) = self.nearest(fault.page);
        let slack = match self.access {
            _ if self.stride.abs() < NEAR => MIDDLE,
            // A part of what is wide may be here.
            Access::Dense => SLACK.max(fault.sets[Access::Dense as usize] as f64 - MIDDLE),
            Access::Strided => SLACK,
        };
        let farthest = (foreseen + 2) as f64 + self.steps;
        let may = fault.is_of_a_walk() || !self.walks;
        (may && (0.0..=farthest).contains(&steps) && off.abs() <= slack).then_some(steps)
    }

    /// Somebody who may have come from a row goes on beside it.
    pub(super) fn notice(&mut self, fault: &Fault) {
        let (steps, off) = self.nearest(fault.page);
        let beside = fault.beside[usize::from(off < 0.0)] && WIDE.contains(&off.abs());
        if beside && (0.0..=self.steps).contains(&steps) {
            self.wide += 1.0;
            // Most of them: once may be by chance.
            if self.wide >= 2.0 && self.wide * 2.0 > self.steps {
                self.access = Access::Dense;
            }
        }
    }

    /// A fault is so many steps on.
    ///
    /// Where in its page the row starts, the page does not say. Every fault narrows it, so that nothing is fetched beside
    /// rows that start between pages: a row starts in the page, or, where the page before is here, it may start there and reach
    /// as far as this one.
    pub(super) fn follow(&mut self, fault: &Fault, steps: f64) {
        let expected = self.at + steps * self.stride;
        let off = (self.off + steps * MIDDLE / self.steps).min(MIDDLE);
        let page = fault.page as f64;
        let mut first = page;
        self.steps = (self.steps + steps).min(LONG);
        if fault.beside[0] && page > expected {
            self.reach = (page - (expected + off)).max(self.reach).min(1.0);
            first -= self.reach;
        } else if steps > 0.0 {
            self.reach *= 1.0 - 1.0 / LONG;
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

    /// The pages of the row so many steps on.
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
