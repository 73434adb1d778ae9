//! Sets of bytes, as sorted ranges that neither touch nor overlap.

use core::ops::Range;

/// A set of byte offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Makes an empty set.
    #[must_use]
    pub const fn new() -> Ranges {
        Ranges(Vec::new())
    }

    /// Adds a range.
    pub fn add(&mut self, new: Range<u64>) {
        self.remove(&new);
        if new.is_empty() {
            return;
        }
        let at = self.0.partition_point(|part| part.start < new.start);
        self.0.insert(at, new);
        self.0.dedup_by(|after, before| {
            let joins = before.end == after.start;
            if joins {
                before.end = after.end;
            }
            joins
        });
    }

    /// Removes a range.
    pub fn remove(&mut self, gone: &Range<u64>) {
        let rest =
            |part: &Range<u64>| [part.start..part.end.min(gone.start), part.start.max(gone.end)..part.end];
        self.0 = self.0.iter().flat_map(rest).filter(|part| !part.is_empty()).collect();
    }

    /// Returns the bytes of `within` that are not in the set.
    #[must_use]
    pub fn missing(&self, within: &Range<u64>) -> Ranges {
        let mut missing = Ranges(vec![within.clone()]);
        self.0.iter().for_each(|part| missing.remove(part));
        missing
    }

    /// Iterates over the parts of the set that lie in `within`, in ascending order.
    pub fn within(&self, within: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let Range { start, end } = *within;
        let first = self.0.partition_point(|part| part.end <= start);
        let parts = self.0[first..].iter().take_while(move |part| part.start < end);
        parts.map(move |part| part.start.max(start)..part.end.min(end))
    }

    /// Returns whether the set has no byte of `range`.
    #[must_use]
    pub fn is_disjoint(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.within(range).next().is_none()
    }

    /// Iterates over the ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }

    /// Returns the number of bytes in the set.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|part| part.end - part.start).sum()
    }
}

/// Converts a range of offsets in memory (`usize`) to a range of byte offsets (`u64`).
#[must_use]
pub fn bytes(part: &Range<usize>) -> Range<u64> {
    part.start as u64..part.end as u64
}

/// Converts a range of byte offsets (`u64`) to a range of offsets in memory (`usize`).
#[must_use]
pub fn offsets(part: &Range<u64>) -> Range<usize> {
    let number = |it| usize::try_from(it).unwrap_or(usize::MAX);
    number(part.start)..number(part.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut() {
        let mut ranges = Ranges::default();
        for part in [4..6, 0..2, 2..4, 10..12, 1..3] {
            ranges.add(part);
        }
        assert_eq!(ranges.0, [0..6, 10..12]);
        assert_eq!(ranges.missing(&(2..20)).0, [6..10, 12..20]);
        assert_eq!(ranges.within(&(5..11)).collect::<Vec<_>>(), [5..6, 10..11]);
        assert!(ranges.is_disjoint(&(6..10)) && ranges.is_disjoint(&(3..3)) && !ranges.is_disjoint(&(6..11)));
        ranges.remove(&(3..11));
        assert_eq!((ranges.bytes(), ranges.0), (4, vec![0..3, 11..12]));
    }
}
