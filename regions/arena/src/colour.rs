//! Colours blocks: blocks of equal size start at different offsets, so that they spread over the cache.
//!
//! Blocks of a C library start at the same offset of a page, so that two equal vectors compete for the same cache sets
//! and DRAM banks, and a load 4096 bytes from an earlier store aliases with it in the processor. Successive blocks
//! therefore start at offsets that differ by more than a page, and by more than a few cache lines modulo a page.

/// Generates the start offsets of successive blocks in rotation.
#[derive(Debug, Default)]
pub struct Colours {
    turn: usize,
}

impl Colours {
    /// Distance between two colours in bytes: a page and 17 cache lines, so that neighbours differ modulo 4 KiB.
    pub const STEP: usize = 4096 + 17 * 64;
    /// Number of colours, which fit into a granule and leave space for a header.
    pub const COUNT: usize = 3;

    /// Returns the next offset in bytes, a multiple of 64.
    pub fn next_offset(&mut self) -> usize {
        self.turn = (self.turn + 1) % Colours::COUNT;
        self.turn * Colours::STEP
    }
}

const _: () = assert!((Colours::COUNT - 1) * Colours::STEP + 64 + 4096 <= crate::GRANULE);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successive_colours_differ_by_lines() {
        let mut colours = Colours::default();
        let mut last = colours.next_offset();
        for _ in 0..10 {
            let next = colours.next_offset();
            assert_eq!(next % 64, 0);
            assert!(next.abs_diff(last) >= 4096);
            assert!((next % 4096).abs_diff(last % 4096) >= 1024);
            last = next;
        }
    }
}
