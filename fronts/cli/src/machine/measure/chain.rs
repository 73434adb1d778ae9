//! Pointer chains through memory that no hardware prefetcher can predict: they visit each cache line once, in a
//! scattered order.

/// Words of 8 bytes in a cache line of 64.
pub(super) const LINE: usize = 8;

/// A permutation of the numbers below a power of two that multiplies, folds the upper half of the bits into the lower
/// half, and multiplies again. Its inverse lets a chain be written from the first line to the last.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    mask: u64,
    fold: u32,
}

const FIRST: u64 = 0x9E37_79B9_7F4A_7C15;
const SECOND: u64 = 0xD6E8_FEB8_6659_FD93;

impl Scatter {
    fn of(count: u64) -> Scatter {
        debug_assert!(count.is_power_of_two());
        Scatter { mask: count - 1, fold: count.ilog2().div_ceil(2).max(1) }
    }

    fn to(self, number: u64) -> u64 {
        let mixed = number.wrapping_mul(FIRST) & self.mask;
        (mixed ^ mixed >> self.fold).wrapping_mul(SECOND) & self.mask
    }

    fn back(self, place: u64) -> u64 {
        let mixed = place.wrapping_mul(inverse(SECOND)) & self.mask;
        // Folding by at least half of the bits is its own inverse.
        (mixed ^ mixed >> self.fold).wrapping_mul(inverse(FIRST)) & self.mask
    }
}

/// Returns the inverse of an odd number modulo 2^64 by Newton's method, which doubles the 3 correct bits in each step.
fn inverse(odd: u64) -> u64 {
    (0..5).fold(odd, |x, _| x.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(x))))
}

/// Writes into each line the index of the next line's first word, so that all lines, a power of two, form one cycle.
pub(super) fn write(words: &mut [u64]) {
    let lines = (words.len() / LINE) as u64;
    let scatter = Scatter::of(lines);
    for (line, place) in words.chunks_exact_mut(LINE).zip(0..) {
        line[0] = scatter.to(scatter.back(place).wrapping_add(1) & scatter.mask) * LINE as u64;
    }
    debug_assert!(lines as usize * LINE == words.len());
}

/// Follows a chain for `steps` reads, each of which depends on the one before, and returns the last index.
#[expect(clippy::cast_possible_truncation, reason = "64-bit only")]
pub(super) fn follow(words: &[u64], from: u64, steps: usize) -> u64 {
    (0..steps).fold(from, |place, _| words[place as usize])
}

/// Reads `reads` words at random, independently of each other, and returns their sum.
pub(super) fn gather(words: &[u64], reads: usize) -> u64 {
    let mask = words.len() as u64 - 1;
    let (mut state, mut sum) = (1_u64, 0_u64);
    for _ in 0..reads {
        let place = largesse_random::next(&mut state) >> 24 & mask;
        sum = sum.wrapping_add(words[place as usize]);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn chain_is_one_cycle() {
        for lines in [1, 2, 8, 64, 4096, 1 << 15] {
            let mut words = vec![u64::MAX; lines * LINE];
            write(&mut words);
            let mut met = HashSet::new();
            let mut place = 0;
            while met.insert(place) {
                place = follow(&words, place, 1);
            }
            assert_eq!((met.len(), place), (lines, 0), "{lines}");
            assert_eq!(follow(&words, 0, lines), 0);
        }
    }

    /// Counts the distances between successive lines: a stride that a prefetcher could learn would leave few.
    #[test]
    fn chain_has_no_stride() {
        let lines = 1 << 12;
        let mut words = vec![0; lines * LINE];
        write(&mut words);
        let mut distances = HashSet::new();
        let mut place = 0;
        for _ in 0..lines {
            let next = follow(&words, place, 1);
            distances.insert(next.wrapping_sub(place));
            place = next;
        }
        assert!(distances.len() > lines / 20, "{}", distances.len());
    }

    #[test]
    fn gather_reads_all_words() {
        let words: Vec<u64> = (0..1 << 12).map(|number| u64::from(number == 77)).collect();
        let hits = gather(&words, 1 << 16);
        assert!((8..32).contains(&hits), "{hits}");
    }
}
