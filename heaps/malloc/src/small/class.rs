//! Defines the size classes of small blocks, and the shape of the slabs that hold them.

/// Largest size in bytes of a small block.
pub const LARGEST_SMALL: usize = 64 << 10;
/// Number of size classes: steps of 16 bytes up to 128, then four to a doubling, so that rounding up wastes at most a
/// fifth.
pub(crate) const CLASSES: usize = 44;
/// Length in bytes of the two kinds of slab, by kind.
pub(crate) const SLAB_BYTES: [usize; KINDS] = [64 << 10, 256 << 10];
pub(crate) const KINDS: usize = 2;

/// Largest size in bytes of the blocks in slabs of the first kind.
const LARGEST_OF_FIRST_KIND: usize = 8 << 10;
/// Number of classes in steps of [`STEP`] bytes.
const EVEN: usize = 8;
const STEP: usize = 16;
/// Number of fractional bits of [`Class::reciprocal`], by which an offset is multiplied instead of divided by the size.
const FRACTION: u32 = 40;
/// Largest number of words of a slab: the last bit of the summary has another meaning.
const MOST_WORDS: usize = 63;

/// A size class: every block of a slab has its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    /// Size of a block in bytes.
    pub(crate) size: usize,
    /// Kind of the class's slabs, an index of [`SLAB_BYTES`].
    pub(crate) kind: usize,
    /// Number of blocks of a slab.
    pub(crate) blocks: usize,
    /// 2^[`FRACTION`] divided by `size`, rounded up.
    reciprocal: u64,
}

/// All classes, ordered by size.
pub(crate) static TABLE: [Class; CLASSES] = table();

const fn table() -> [Class; CLASSES] {
    let mut classes = [Class { size: 0, kind: 0, blocks: 0, reciprocal: 0 }; CLASSES];
    let mut number = 0;
    while number < CLASSES {
        classes[number] = class(number);
        number += 1;
    }
    classes
}

const fn class(number: usize) -> Class {
    let size = if number < EVEN {
        (number + 1) * STEP
    } else {
        let (doubling, quarter) = ((number - EVEN) / 4, (number - EVEN) % 4);
        (5 + quarter) << (5 + doubling)
    };
    let kind = if size <= LARGEST_OF_FIRST_KIND { 0 } else { 1 };
    let fit = SLAB_BYTES[kind] / size;
    let blocks = if fit < MOST_WORDS * 64 { fit } else { MOST_WORDS * 64 };
    Class { size, kind, blocks, reciprocal: (1_u64 << FRACTION).div_ceil(size as u64) }
}

/// Returns the number of the smallest class with blocks of at least `size` bytes, which is at most [`LARGEST_SMALL`].
#[inline]
pub(crate) fn class_of(size: usize) -> usize {
    if size <= EVEN * STEP {
        return size.saturating_sub(1) / STEP;
    }
    let last = size - 1;
    let log = last.ilog2() as usize;
    EVEN + (log - 7) * 4 + (last >> (log - 2)) - 4
}

/// Returns the number of the smallest class with blocks of at least `size` bytes at multiples of `align`, a power of
/// two; `None` if such blocks are not small.
#[inline]
pub(crate) fn class_for(size: usize, align: usize) -> Option<usize> {
    if size > LARGEST_SMALL || align > LARGEST_SMALL {
        return None;
    }
    let first = class_of(size);
    if align <= STEP {
        return Some(first);
    }
    // Slabs start at multiples of every such alignment, and the last class is a power of two.
    (first..CLASSES).find(|&number| TABLE[number].size.is_multiple_of(align))
}

impl Class {
    /// Returns the number of 64-bit words that have a bit for each block of a slab.
    pub(crate) fn words(&self) -> usize {
        self.blocks.div_ceil(64)
    }

    /// Returns a word's value while all of its blocks are free.
    #[inline]
    pub(crate) fn full(&self, word: usize) -> u64 {
        match self.blocks - word * 64 {
            0..64 => (1 << (self.blocks % 64)) - 1,
            _ => u64::MAX,
        }
    }

    /// Returns the number of the block that starts `offset` bytes into a slab; `None` if none starts there.
    #[inline]
    pub(crate) fn block_at(&self, offset: usize) -> Option<usize> {
        let block = ((offset as u64 * self.reciprocal) >> FRACTION) as usize;
        (block * self.size == offset && block < self.blocks).then_some(block)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sizes_get_the_smallest_class() {
        let mut number = 0;
        for size in 0..=LARGEST_SMALL {
            if size > TABLE[number].size {
                number += 1;
            }
            assert_eq!(class_of(size), number, "{size} bytes");
        }
        assert_eq!(number, CLASSES - 1);
        assert_eq!(TABLE[number].size, LARGEST_SMALL);
    }

    #[test]
    fn rounding_up_wastes_at_most_a_fifth() {
        for pair in TABLE.windows(2).skip(EVEN - 1) {
            let (least, size) = (pair[0].size + 1, pair[1].size);
            assert!((size - least) * 5 <= size, "{least} bytes get {size}");
        }
    }

    #[test]
    fn blocks_are_found_by_their_start_alone() {
        for class in &TABLE {
            assert!(class.blocks * class.size <= SLAB_BYTES[class.kind]);
            for block in 0..class.blocks {
                let start = block * class.size;
                assert_eq!(class.block_at(start), Some(block), "{} bytes", class.size);
                for inside in [1, 8, class.size - 1] {
                    assert_eq!(class.block_at(start + inside), None, "{} bytes", class.size);
                }
            }
            let end = class.blocks * class.size;
            assert_eq!(class.block_at(end), None, "the rest of a slab of {} bytes", class.size);
        }
    }

    #[test]
    fn alignment_holds_for_every_block() {
        for align in (0..=16).map(|bit| 1_usize << bit) {
            for size in [0, 1, 24, 100, 4000, 5000, LARGEST_SMALL] {
                let class = &TABLE[class_for(size, align).expect("small")];
                assert!(class.size >= size && class.size.is_multiple_of(align), "{size} at {align}");
            }
        }
        assert_eq!(class_for(16, 2 * LARGEST_SMALL), None);
        assert_eq!(class_for(LARGEST_SMALL + 1, 16), None);
    }

    #[test]
    fn full_words_have_a_bit_for_each_block() {
        for class in &TABLE {
            let bits: u32 = (0..class.words()).map(|word| class.full(word).count_ones()).sum();
            assert_eq!(bits as usize, class.blocks, "{} bytes", class.size);
        }
    }
}
