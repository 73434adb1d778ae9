//! Places requests where the fewest cold spans are, then where they fit best, then at the lowest address.

use super::{Arena, Granules, Prefer, Request, spans_of};
use crate::Backing;

/// Number of free extents that are examined for a request before the best of them is used.
const CANDIDATES: usize = 48;

impl<B: Backing> Arena<B> {
    /// Returns the best position for a request: its first granule, and the free extent that contains it.
    pub(super) fn find(&self, request: Request) -> Option<(Granules, Granules)> {
        let mut best: Option<((usize, u32, u32), Granules, Granules)> = None;
        let mut looked = 0;
        for free in self.bins.from(&self.extents, request.granules) {
            let len = self.extents.get(free).len;
            let Some(places) = places(free, len, request) else { continue };
            for at in places {
                let cold = self.spans.cold_in(spans_of(&(at..at + request.granules)));
                let cost = match request.prefer {
                    Prefer::Warm | Prefer::Sparse => cold,
                    Prefer::Cold => usize::MAX - cold,
                };
                let key = (cost, len, at);
                if best.is_none_or(|(known, ..)| key < known) {
                    best = Some((key, at, free));
                }
            }
            looked += 1;
            // Bins are visited by size: after a position without cost, much longer extents only fit worse.
            let settled = best.is_some_and(|((cost, known, _), ..)| cost == 0 && len > known * 2);
            if settled || looked >= CANDIDATES {
                break;
            }
        }
        best.map(|(_, at, free)| (at, free))
    }
}

/// Returns the lowest and the highest first granule in a free extent at which a request could be placed; `None` if
/// there is none.
fn places(free: Granules, len: Granules, request: Request) -> Option<[Granules; 2]> {
    let end = free + len;
    let mask = request.align - 1;
    let low = free + (request.phase.wrapping_sub(free) & mask);
    let last = end.checked_sub(request.granules)?;
    let back = last.wrapping_sub(request.phase) & mask;
    let high = last.checked_sub(back)?;
    (low <= high && low >= free && high >= free).then_some([low, high])
}
