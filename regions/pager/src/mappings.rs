//! The parts of a range that the program has mapped or reserved.

use crate::far_range::FarRange;
use core::ops::Range;
use largesse_pages::{SPAN, base_page};
use largesse_store::{Ranges, bytes, offsets};

/// Which parts of a range of addresses the program has. Offsets are in bytes from the start of the range. A part that
/// is neither mapped nor reserved is free.
#[derive(Clone, Debug, Default)]
pub struct MappedParts {
    /// Mapped parts: the program may have contents there.
    taken: Ranges,
    /// Parts that the program has, but could never use: they have no contents, and no room in a store.
    reserved: Ranges,
}

impl MappedParts {
    /// Makes a range that is free.
    #[must_use]
    pub const fn new() -> MappedParts {
        MappedParts { taken: Ranges::new(), reserved: Ranges::new() }
    }

    /// Marks a part as mapped.
    pub fn take(&mut self, part: &Range<usize>) {
        self.reserved.remove(&bytes(part));
        self.taken.add(bytes(part));
    }

    /// Marks a part as reserved.
    pub fn reserve(&mut self, part: &Range<usize>) {
        self.taken.remove(&bytes(part));
        self.reserved.add(bytes(part));
    }

    /// Marks a part as free.
    pub fn release(&mut self, part: &Range<usize>) {
        self.taken.remove(&bytes(part));
        self.reserved.remove(&bytes(part));
    }

    /// Returns the mapped parts of the offsets `within`.
    #[must_use]
    pub fn taken_in(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        parts_in(&self.taken, within)
    }

    /// Returns the reserved parts of the offsets `within`.
    #[must_use]
    pub fn reserved_in(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        parts_in(&self.reserved, within)
    }

    /// Returns the parts of the offsets `within` that are not mapped.
    #[must_use]
    pub fn untaken_in(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        self.taken.missing(&bytes(within)).iter().map(|part| offsets(&part)).collect()
    }

    /// Returns the number of reserved bytes in `within`.
    #[must_use]
    pub fn reserved_bytes(&self, within: &Range<usize>) -> usize {
        self.reserved_in(within).iter().map(Range::len).sum()
    }

    /// Returns the number of bytes in `within` that the program has, mapped or reserved.
    #[must_use]
    pub fn known_bytes(&self, within: &Range<usize>) -> usize {
        self.taken_in(within).iter().map(Range::len).sum::<usize>() + self.reserved_bytes(within)
    }

    /// Returns the number of mapped bytes.
    #[must_use]
    pub fn taken_bytes(&self) -> u64 {
        self.taken.bytes()
    }

    /// Returns the lowest free part of `len` bytes whose address is a multiple of `align`, in a range of `all` bytes at
    /// the address `start`; `None` if there is none.
    fn free(&self, len: usize, align: usize, (start, all): (usize, usize)) -> Option<Range<usize>> {
        // Both sets are in ascending order, and have no part in common.
        let (mut taken, mut reserved) = (self.taken.iter().peekable(), self.reserved.iter().peekable());
        let aligned = |from: usize| Some((start + from).checked_next_multiple_of(align)? - start);
        let mut from = aligned(0)?;
        loop {
            let next_is_taken = match (taken.peek(), reserved.peek()) {
                (Some(one), Some(other)) => one.start < other.start,
                (one, _) => one.is_some(),
            };
            let next = if next_is_taken { taken.next() } else { reserved.next() };
            let end = next.as_ref().map_or(all, |part| offsets(part).start);
            if from.checked_add(len)? <= end {
                return Some(from..from + len);
            }
            from = aligned(offsets(&next?).end)?;
        }
    }

    /// Returns a free part of `len` bytes for a mapping at the address `hint` (0: no wish) of the range of `all` bytes
    /// at the address `start`: there if that is possible, otherwise the lowest one.
    #[must_use]
    pub fn place(&self, len: usize, hint: usize, (start, all): (usize, usize)) -> Option<Range<usize>> {
        let hint = hint & !(base_page() - 1); // as the kernel rounds it
        let wished = hint.checked_sub(start).map(|from| from..from.saturating_add(len));
        wished
            .filter(|part| part.end <= all && self.is_free(part))
            .or_else(|| self.free(len, alignment(len, hint), (start, all)))
    }

    /// Returns whether a part is free.
    #[must_use]
    pub fn is_free(&self, part: &Range<usize>) -> bool {
        let part = bytes(part);
        [&self.taken, &self.reserved].iter().all(|set| set.is_disjoint(&part))
    }
}

fn parts_in(set: &Ranges, within: &Range<usize>) -> Vec<Range<usize>> {
    set.within(&bytes(within)).map(|part| offsets(&part)).collect()
}

/// Returns the alignment in bytes of a new mapping of `len` bytes. Mappings of at least a span (2 MiB) are aligned to
/// spans, so that large pages fit, and transfer units do not cross their ends. The alignment of the address `hint` that
/// the program prefers is kept, up to 64 MiB: allocators cut such a mapping into aligned parts.
#[must_use]
fn alignment(len: usize, hint: usize) -> usize {
    let least = if len >= SPAN { SPAN } else { base_page() };
    match hint {
        0 => least,
        _ => (1 << hint.trailing_zeros()).clamp(least, 64 << 20),
    }
}

/// The reserved range in which the program maps far memory, and which parts of it are mapped.
#[derive(Debug)]
pub struct Mappings {
    pub(crate) place: FarRange,
    pub(crate) parts: MappedParts,
}

impl Mappings {
    pub(crate) const fn new(place: FarRange, parts: MappedParts) -> Mappings {
        Mappings { place, parts }
    }

    pub(crate) fn start(&self) -> usize {
        self.place.range.start().as_ptr().addr()
    }

    /// Returns the part of the addresses `at` that lies in the range, as offsets from its start.
    pub(crate) fn inside(&self, at: &Range<usize>) -> Range<usize> {
        let (start, len) = (self.start(), self.place.range.len());
        at.start.clamp(start, start + len) - start..at.end.clamp(start, start + len) - start
    }

    /// Returns a free part of `len` bytes, at the address `hint` if that is possible.
    pub(crate) fn free(&self, len: usize, hint: usize) -> Option<Range<usize>> {
        self.parts.place(len, hint, (self.start(), self.place.range.len()))
    }

    pub(crate) fn is_free(&self, part: &Range<usize>) -> bool {
        part.end <= self.place.range.len() && self.parts.is_free(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn parts_are_mapped_reserved_or_free() {
        let mut parts = MappedParts::new();
        parts.reserve(&(2 * MIB..10 * MIB));
        parts.take(&(4 * MIB..6 * MIB));
        assert_eq!(parts.taken_in(&(0..9 * MIB)).first(), Some(&(4 * MIB..6 * MIB)));
        assert_eq!(parts.reserved_in(&(0..20 * MIB)), [2 * MIB..4 * MIB, 6 * MIB..10 * MIB]);
        assert_eq!(parts.free(2 * MIB, MIB, (0, 20 * MIB)), Some(0..2 * MIB));
        assert_eq!(parts.free(3 * MIB, MIB, (0, 20 * MIB)), Some(10 * MIB..13 * MIB));
        assert_eq!(parts.free(3 * MIB, 4 * MIB, (0, 20 * MIB)), Some(12 * MIB..15 * MIB));
        assert_eq!(parts.free(3 * MIB, 4 * MIB, (0, 14 * MIB)), None);
        assert_eq!(parts.free(2 * MIB, 4 * MIB, (3 * MIB, 20 * MIB)), Some(13 * MIB..15 * MIB));
        assert!(parts.is_free(&(0..2 * MIB)) && !parts.is_free(&(MIB..3 * MIB)));
        assert!(!parts.is_free(&(5 * MIB..6 * MIB)) && parts.is_free(&(10 * MIB..11 * MIB)));
        parts.release(&(3 * MIB..5 * MIB));
        assert_eq!(parts.free(2 * MIB, MIB, (0, 20 * MIB)), Some(0..2 * MIB));
        assert_eq!(parts.free(2 * MIB + 1, MIB, (0, 20 * MIB)), Some(10 * MIB..12 * MIB + 1));
        parts.reserve(&(5 * MIB..6 * MIB));
        assert_eq!((parts.taken_bytes(), parts.untaken_in(&(0..MIB)).len()), (0, 1));
    }

    #[test]
    fn alignment_follows_size_and_hint() {
        for (len, hint, want) in [
            (MIB, 0, base_page()),
            (SPAN, 0, SPAN),
            (SPAN, 0x7f00_1234_5000, SPAN),
            (SPAN, 0x7f00_0200_0000, 32 * MIB),
            (SPAN, 1 << 41, 64 * MIB),
        ] {
            assert_eq!(alignment(len, hint), want, "{len} {hint:#x}");
        }
    }
}
