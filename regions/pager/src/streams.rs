//! What will be touched next: sequences of faults with a constant distance.
//!
//! Numerical programs walk through arrays with strides, through several at once. A fault that stands
//! where a known stream would go next lets the stream fetch some sets ahead; three faults at equal
//! distance, among the last ones, start a stream.

/// Faults that are remembered.
const RECENT: usize = 16;
/// Streams that are followed at once.
const STREAMS: usize = 8;
/// Sets ahead at most.
const MOST_AHEAD: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Stream {
    /// Where the next fault would be.
    next: usize,
    stride: isize,
    /// Sets to fetch ahead the next time.
    depth: usize,
    /// When it was last followed.
    used: u64,
}

/// The streams of a program.
#[derive(Debug, Default)]
pub struct Streams {
    recent: [Option<usize>; RECENT],
    at: usize,
    streams: Vec<Stream>,
    clock: u64,
}

impl Streams {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Streams {
        Streams::default()
    }

    /// A fault at a page, where sets of `set` pages move; `ahead` gets a page of each set to fetch, of
    /// at most `most` pages in all.
    pub fn fault(&mut self, page: usize, set: usize, most: usize, mut ahead: impl FnMut(usize)) {
        self.clock += 1;
        let here = page / set * set;
        let room = (most / set).min(MOST_AHEAD);
        let known = self.streams.iter_mut().find(|stream| stream.next.abs_diff(here) < set);
        if let Some(stream) = known {
            let depth = stream.depth.min(room);
            let mut next = here;
            for _ in 0..depth {
                let Some(step) = next.checked_add_signed(stream.stride) else { break };
                next = step;
                ahead(next);
            }
            stream.next = next.saturating_add_signed(stream.stride);
            stream.depth = (stream.depth * 2).min(MOST_AHEAD);
            stream.used = self.clock;
        } else if let Some(stride) = self.stride_to(here) {
            let stream =
                Stream { next: here.saturating_add_signed(stride), stride, depth: 2, used: self.clock };
            if self.streams.len() < STREAMS {
                self.streams.push(stream);
            } else if let Some(oldest) = self.streams.iter_mut().min_by_key(|stream| stream.used) {
                *oldest = stream;
            }
        }
        self.recent[self.at] = Some(here);
        self.at = (self.at + 1) % RECENT;
    }

    /// The distance at which two earlier faults lead to `here`.
    fn stride_to(&self, here: usize) -> Option<isize> {
        let seen = |page: usize| self.recent.contains(&Some(page));
        self.recent.iter().flatten().find_map(|&before| {
            let stride = isize::try_from(here).ok()? - isize::try_from(before).ok()?;
            let first = before.checked_add_signed(-stride)?;
            (stride != 0 && seen(first)).then_some(stride)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Of the pages of a program, the share that had been fetched when it came to them.
    fn foreseen(pages: &[usize], set: usize) -> f64 {
        let mut streams = Streams::new();
        let mut here = HashSet::new();
        let mut faults = 0;
        for &page in pages {
            if here.insert(page / set) {
                faults += 1;
                streams.fault(page, set, 256, |ahead| _ = here.insert(ahead / set));
            }
        }
        1.0 - f64::from(faults) / pages.len() as f64
    }

    #[test]
    fn strides_of_any_kind_are_foreseen() {
        let forward: Vec<_> = (0..1000).collect();
        let backward: Vec<_> = (0..1000).rev().collect();
        let wide: Vec<_> = (0..1000).map(|i| i * 37).collect();
        let three: Vec<_> = (0..900).map(|i| i % 3 * 100_000 + i / 3 * 5).collect();
        for pages in [forward, backward, wide, three] {
            assert!(foreseen(&pages, 1) > 0.85, "{}", foreseen(&pages, 1));
        }
    }

    #[test]
    fn nothing_is_fetched_for_random_faults() {
        let mut state = 12345_u64;
        let mut fetched = 0;
        let mut streams = Streams::new();
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            streams.fault((state >> 40) as usize, 1, 256, |_| fetched += 1);
        }
        assert!(fetched < 100, "{fetched}");
    }

    #[test]
    fn what_is_fetched_stays_within_bounds() {
        let mut streams = Streams::new();
        for page in (0..40).map(|i| i * 64) {
            let mut pages = 0;
            streams.fault(page, 64, 128, |_| pages += 64);
            assert!(pages <= 128);
        }
    }
}
