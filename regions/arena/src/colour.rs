//! Start offsets: equal-sized blocks must not sit at equal offsets.
//!
//! Blocks of a C library start at the same offset of a page, so that two equal vectors compete for
//! the same cache sets and DRAM banks, and a load that follows a store 4096 bytes away looks like
//! the same address to the processor. Successive blocks therefore start at offsets that differ by
//! more than a page, and by more than a few lines modulo a page.

/// Offsets handed out in turn.
#[derive(Debug, Default)]
pub struct Colours {
    turn: usize,
}

impl Colours {
    /// Distance between two colours: a page and 17 lines, so that neighbours differ modulo 4 KiB.
    pub const STEP: usize = 4096 + 17 * 64;
    /// How many fit into a granule and leave room for a header.
    pub const COUNT: usize = 3;

    /// The next offset in bytes, a multiple of 64.
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
    fn successive_colours_differ_within_a_page_and_keep_lines() {
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
