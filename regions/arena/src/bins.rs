//! Finds free extents by size: eight bins for each power of two, and a bitmap of non-empty bins.

use crate::extent::{Extents, NONE};

const EXACT: u32 = 16;
const BINS: usize = 256;

/// Returns the index of the bin for extents of `len` granules. Lengths below 16 have a bin each.
fn bin_of(len: u32) -> usize {
    if len < EXACT {
        return len as usize;
    }
    let log = len.ilog2();
    (EXACT + (log - 4) * 8 + ((len >> (log - 3)) & 7)) as usize
}

#[derive(Debug)]
pub(crate) struct Bins {
    heads: [u32; BINS],
    in_use: [u64; BINS / 64],
}

impl Bins {
    pub(crate) const fn new() -> Bins {
        Bins { heads: [NONE; BINS], in_use: [0; BINS / 64] }
    }

    /// Adds a free extent to its bin.
    pub(crate) fn link(&mut self, extents: &mut Extents, at: u32) {
        let bin = bin_of(extents.get(at).len);
        let head = self.heads[bin];
        let entry = extents.get_mut(at);
        entry.next = head;
        entry.prev = NONE;
        if head != NONE {
            extents.get_mut(head).prev = at;
        }
        self.heads[bin] = at;
        self.in_use[bin / 64] |= 1 << (bin % 64);
    }

    /// Removes a free extent from its bin.
    pub(crate) fn unlink(&mut self, extents: &mut Extents, at: u32) {
        let entry = *extents.get(at);
        if entry.next != NONE {
            extents.get_mut(entry.next).prev = entry.prev;
        }
        if entry.prev != NONE {
            extents.get_mut(entry.prev).next = entry.next;
            return;
        }
        let bin = bin_of(entry.len);
        debug_assert_eq!(self.heads[bin], at);
        self.heads[bin] = entry.next;
        if entry.next == NONE {
            self.in_use[bin / 64] &= !(1 << (bin % 64));
        }
    }

    /// Returns free extents that may hold `len` granules, in the order of bins, small ones first. Extents of the first
    /// bin may be shorter than `len`.
    pub(crate) fn from<'a>(&'a self, extents: &'a Extents, len: u32) -> impl Iterator<Item = u32> + 'a {
        let mut bin = bin_of(len);
        let mut at = NONE;
        let mut started = false;
        core::iter::from_fn(move || {
            if at != NONE {
                at = extents.get(at).next;
            }
            while at == NONE {
                bin = self.next_in_use(bin + usize::from(started))?;
                started = true;
                at = self.heads[bin];
            }
            Some(at)
        })
    }

    fn next_in_use(&self, bin: usize) -> Option<usize> {
        let mut word = bin / 64;
        let mut bits = *self.in_use.get(word)? & (u64::MAX << (bin % 64));
        while bits == 0 {
            word += 1;
            bits = *self.in_use.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_grow_with_length() {
        assert!((1..100_000_u32).is_sorted_by_key(bin_of));
        assert!(bin_of(u32::MAX) < BINS);
        assert_ne!(bin_of(16), bin_of(15));
    }
}
