//! Holds the state of each block of the heap, and the mark bits of its objects.

use crate::side::{Side, Zeroed};
use crate::{AllocationClass, Layout};
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use largesse_pages::{MapError, SPAN};

/// The word with which dead cells are overwritten under [`GcSettings::poison`](crate::GcSettings::poison). It is the
/// address of no object: a language that checks each word it reads for this value finds a lost root immediately, not
/// at the next collection.
pub const POISON: u64 = 0xdead_beef_dead_bee0;

/// Size of a block in bytes: the unit in which the keep hands out memory.
pub const BLOCK: usize = 32 << 10;
/// Number of 8-byte words in a block.
pub(crate) const WORDS: usize = BLOCK / 8;
/// Number of blocks in a span.
pub(crate) const PER_SPAN: usize = SPAN / BLOCK;
/// Number of bytes of the heap for each mark bit: every object starts at a multiple of this.
pub(crate) const GRAIN: usize = 16;
/// Number of mark bits of a block.
pub(crate) const MARKS: usize = BLOCK / GRAIN;
/// Number of mark bits of a cache line.
const LINE: usize = 64 / GRAIN;
/// Number of bytes of the heap whose mark bits share one 64-bit word.
pub(crate) const GROUP: usize = 64 * GRAIN;
/// Number of 64-bit words that hold the mark bits of a block.
const MARK_WORDS: usize = MARKS / 64;

/// A block's number is counted from the start of the heap.
pub(crate) type BlockNumber = u32;

/// An offset is the distance in bytes of an address from the start of the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset(usize);

impl Offset {
    pub(crate) const fn get(self) -> usize {
        self.0
    }

    /// Returns the number of the block that contains this offset.
    pub(crate) const fn block(self) -> BlockNumber {
        (self.0 / BLOCK) as BlockNumber
    }
}

/// Packs the layout, cell size and allocation position of one block into one word.
///
/// `words << 16 | next << 4 | clean << 3 | large << 2 | layout`. `words` is the size of a cell, or of the large
/// object that starts here (0 in a free block and inside a large object); `next` is the first mark from which free
/// cells are searched; `clean` says that memory not handed out yet reads as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockState(u64);

impl BlockState {
    /// The state of a block that is free or lies within a large object.
    pub(crate) const NONE: BlockState = BlockState(0);

    pub(crate) const fn cells(class: AllocationClass, clean: bool) -> BlockState {
        BlockState((class.words() as u64) << 16 | (clean as u64) << 3 | class.layout() as u64)
    }

    pub(crate) const fn large(layout: Layout, words: usize) -> BlockState {
        BlockState((words as u64) << 16 | 1 << 2 | layout as u64)
    }

    /// Returns the number of words of a cell, or of the large object.
    #[inline]
    pub(crate) const fn words(self) -> usize {
        (self.0 >> 16) as usize
    }

    #[inline]
    pub(crate) const fn layout(self) -> Layout {
        Layout::ALL[(self.0 & 3) as usize]
    }

    pub(crate) const fn is_large(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    pub(crate) const fn is_clean(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// Returns the allocation class of a block of cells.
    pub(crate) fn class(self) -> Option<AllocationClass> {
        if self.is_large() || self.words() == 0 {
            None
        } else {
            AllocationClass::of(self.layout(), self.words())
        }
    }

    /// Returns the index of the mark bit from which free cells are searched.
    pub(crate) const fn next(self) -> usize {
        (self.0 >> 4 & 0xfff) as usize
    }

    pub(crate) const fn with_next(self, next: usize) -> BlockState {
        BlockState(self.0 & !0xfff0 | (next as u64) << 4)
    }

    pub(crate) const fn unclean(self) -> BlockState {
        BlockState(self.0 & !(1 << 3))
    }

    /// Returns the number of blocks that a large object of `words` words occupies.
    pub(crate) const fn span_of_large(words: usize) -> usize {
        words.div_ceil(WORDS)
    }
}

// SAFETY: zero is a valid number, and atomics may be written through shared references.
unsafe impl Zeroed for AtomicU64 {}

/// Holds the state and mark bits of all blocks. Only the owner of a block accesses its entry: the holder of the keep's
/// lock, the thread that the block is delegated to, or the collection while the world is stopped. A change of owner
/// synchronises memory, so that `Relaxed` suffices here.
#[derive(Debug)]
pub(crate) struct Blocks {
    start: usize,
    bytes: usize,
    table: Side<AtomicU64>,
    marks: Side<AtomicU64>,
    /// Whether cells smaller than a cache line are handed out in whole free lines only: see
    /// [`leave_holes`](Blocks::leave_holes).
    leaves_holes: AtomicBool,
}

impl Blocks {
    pub(crate) fn new(start: usize, blocks: usize) -> Result<Blocks, MapError> {
        Ok(Blocks {
            start,
            bytes: blocks * BLOCK,
            table: Side::new(blocks)?,
            marks: Side::new(blocks * MARK_WORDS)?,
            leaves_holes: AtomicBool::new(true),
        })
    }

    /// Sets whether cells smaller than a cache line are handed out in whole free lines only. Then new objects share
    /// no line with older ones, and objects allocated together are adjacent.
    pub(crate) fn leave_holes(&self, yes: bool) {
        self.leaves_holes.store(yes, Relaxed);
    }

    fn leaves_holes(&self, class: AllocationClass) -> bool {
        LINE.is_multiple_of(class.bytes() / GRAIN) && self.leaves_holes.load(Relaxed)
    }

    /// Returns the address of a block.
    pub(crate) fn address(&self, block: BlockNumber) -> usize {
        self.start + block as usize * BLOCK
    }

    /// Returns the offset of an address in the heap, or `None` when it is outside.
    #[inline]
    pub(crate) fn offset(&self, address: usize) -> Option<Offset> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.bytes).then_some(Offset(offset))
    }

    /// Returns the state of the block that contains an offset.
    #[inline]
    pub(crate) fn at_offset(&self, offset: Offset) -> BlockState {
        // SAFETY: an offset is within the heap, and the table has all its blocks.
        BlockState(unsafe { self.table.get_unchecked(offset.0 / BLOCK) }.load(Relaxed))
    }

    pub(crate) fn get(&self, block: BlockNumber) -> BlockState {
        BlockState(self.table[block as usize].load(Relaxed))
    }

    pub(crate) fn set(&self, block: BlockNumber, what: BlockState) {
        self.table[block as usize].store(what.0, Relaxed);
    }

    /// Marks the object at an offset. Returns `false` when it was marked before. `SHARED` says that other threads
    /// mark, too.
    #[inline]
    pub(crate) fn mark<const SHARED: bool>(&self, offset: Offset) -> bool {
        let bit = 1 << (offset.0 / GRAIN % 64);
        let word = self.mark_word(offset);
        // Most references lead to marked objects: reading first avoids the write.
        let before = word.load(Relaxed);
        if before & bit != 0 {
            return false;
        }
        if SHARED {
            return word.fetch_or(bit, Relaxed) & bit == 0;
        }
        word.store(before | bit, Relaxed);
        true
    }

    /// Returns the word of marks that contains the mark of the object at an offset.
    #[inline]
    pub(crate) fn group(&self, offset: Offset) -> MarkWord<'_> {
        let word = self.mark_word(offset);
        let before = word.load(Relaxed);
        MarkWord { word, number: offset.0 / GRAIN / 64, before, bits: before }
    }

    #[inline]
    pub(crate) fn is_marked(&self, offset: Offset) -> bool {
        self.mark_word(offset).load(Relaxed) & 1 << (offset.0 / GRAIN % 64) != 0
    }

    #[inline]
    fn mark_word(&self, offset: Offset) -> &AtomicU64 {
        // SAFETY: an offset is within the heap, and there is a mark for every 16 bytes of it.
        unsafe { self.marks.get_unchecked(offset.0 / GRAIN / 64) }
    }

    /// Clears all marks of a block.
    pub(crate) fn clear_marks(&self, block: BlockNumber) {
        self.marks_of(block).iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Returns the number of marked objects that start in a block.
    pub(crate) fn count_marks(&self, block: BlockNumber) -> usize {
        self.marks_of(block).iter().map(|word| word.load(Relaxed).count_ones() as usize).sum()
    }

    /// Returns whether any object that starts in a block is marked.
    pub(crate) fn has_marks(&self, block: BlockNumber) -> bool {
        self.marks_of(block).iter().any(|word| word.load(Relaxed) != 0)
    }

    /// Returns the offsets of the marked cells of a block in use that have bytes `within` it, or of the large object that
    /// starts there, if it is marked.
    pub(crate) fn marked(&self, block: BlockNumber, within: Range<usize>) -> impl Iterator<Item = Offset> {
        let state = self.get(block);
        let bytes = if state.is_large() { BLOCK } else { state.words() * 8 };
        let cells = within.start / bytes..within.end.div_ceil(bytes).min(BLOCK / bytes);
        let start = block as usize * BLOCK;
        cells.map(move |cell| Offset(start + cell * bytes)).filter(|at| self.is_marked(*at))
    }

    /// Returns the next run of free cells of `class` at or above mark `from`: its first mark and the mark after its
    /// end.
    pub(crate) fn free_run(
        &self,
        block: BlockNumber,
        class: AllocationClass,
        from: usize,
    ) -> Option<(usize, usize)> {
        let step = class.bytes() / GRAIN;
        let end = MARKS / step * step;
        let marks = self.marks_of(block);
        let marked = |at: usize| marks[at / 64].load(Relaxed) & 1 << (at % 64) != 0;
        let mut at = from;
        while at < end && marked(at) {
            at += step;
        }
        (at < end).then(|| (at, next_mark(marks, at).min(end)))
    }

    /// Returns the next run of cells that may be handed out. It is a [`free_run`](Blocks::free_run), cut to whole
    /// cache lines if [`leave_holes`](Blocks::leave_holes) says so.
    pub(crate) fn run_to_hand_out(
        &self,
        block: BlockNumber,
        class: AllocationClass,
        from: usize,
    ) -> Option<(usize, usize)> {
        let mut from = from;
        loop {
            let (at, end) = self.free_run(block, class, from)?;
            if !self.leaves_holes(class) {
                return Some((at, end));
            }
            let lines = (at.next_multiple_of(LINE), end / LINE * LINE);
            if lines.0 < lines.1 {
                return Some(lines);
            }
            from = end;
        }
    }

    /// Returns the number of bytes that can be handed out from a swept block.
    pub(crate) fn bytes_to_hand_out(&self, block: BlockNumber, class: AllocationClass) -> usize {
        if !self.leaves_holes(class) {
            return BLOCK - self.count_marks(block) * class.bytes();
        }
        let used_lines = |word: &AtomicU64| {
            let pairs = word.load(Relaxed);
            let pairs = pairs | pairs >> 1;
            // One bit for every four marks, those of a cache line.
            ((pairs | pairs >> 2) & 0x1111_1111_1111_1111).count_ones() as usize
        };
        BLOCK - self.marks_of(block).iter().map(used_lines).sum::<usize>() * LINE * GRAIN
    }

    /// Returns the number of free cells of a block that its owner has not handed out yet.
    pub(crate) fn free_cells(&self, block: BlockNumber, class: AllocationClass) -> usize {
        let step = class.bytes() / GRAIN;
        let mut from = self.get(block).next();
        let mut cells = 0;
        while let Some((at, end)) = self.run_to_hand_out(block, class, from) {
            cells += (end - at) / step;
            from = end;
        }
        cells
    }

    /// Overwrites the dead cells of a block that is in use and delegated to no thread.
    pub(crate) fn poison(&self, block: BlockNumber) {
        let state = self.get(block);
        let Some(class) = state.class() else {
            if self.count_marks(block) == 0 {
                self.overwrite(block, 0, state.words() / 2);
            }
            return;
        };
        let mut from = 0;
        while let Some((at, end)) = self.free_run(block, class, from) {
            self.overwrite(block, at, end);
            from = end;
        }
    }

    fn overwrite(&self, block: BlockNumber, from: usize, to: usize) {
        for mark in from..to {
            let dead = object_at(self.address(block) + mark * GRAIN).cast();
            // SAFETY: the cell is in a usable block and dead, and the world is stopped.
            unsafe { dead.write([POISON; 2]) };
        }
    }

    fn marks_of(&self, block: BlockNumber) -> &[AtomicU64] {
        self.marks.slice(block as usize * MARK_WORDS, MARK_WORDS)
    }
}

/// Caches one 64-bit word of mark bits, and writes it back after several bits are set. Without it, marking the
/// adjacent pairs of a list would wait, at each pair, for the store of the pair before.
pub(crate) struct MarkWord<'a> {
    word: &'a AtomicU64,
    /// Index of the word in the table of mark bits.
    number: usize,
    before: u64,
    bits: u64,
}

impl MarkWord<'_> {
    /// Returns whether this word contains the mark of the object at an offset.
    #[inline]
    pub(crate) fn has(&self, offset: Offset) -> bool {
        offset.0 / GRAIN / 64 == self.number
    }

    /// Marks an object whose mark is in this word; returns `false` when it was marked before.
    #[inline]
    pub(crate) fn mark(&mut self, offset: Offset) -> bool {
        let bit = 1 << (offset.0 / GRAIN % 64);
        let first_time = self.bits & bit == 0;
        self.bits |= bit;
        first_time
    }

    /// Returns whether an object whose mark is in this word is marked.
    #[inline]
    pub(crate) fn is_marked(&self, offset: Offset) -> bool {
        self.bits & 1 << (offset.0 / GRAIN % 64) != 0
    }

    /// Writes the marks back. `shared` says that other threads mark, too. Returns `false` when another thread marked
    /// the object at `offset` before this write.
    #[inline]
    pub(crate) fn write(self, offset: Offset, shared: bool) -> bool {
        let new = self.bits & !self.before;
        if new == 0 {
            return true;
        }
        if shared {
            return self.word.fetch_or(new, Relaxed) & new & 1 << (offset.0 / GRAIN % 64) == 0;
        }
        self.word.store(self.bits, Relaxed);
        true
    }
}

/// Returns the object at an address of the heap.
#[inline]
pub(crate) fn object_at(address: usize) -> NonNull<u64> {
    let object = core::ptr::with_exposed_provenance_mut(address);
    // SAFETY: objects lie in the backing's range, which does not start at zero.
    unsafe { NonNull::new_unchecked(object) }
}

/// Returns the first set mark at or above `at`, or the end.
fn next_mark(marks: &[AtomicU64], at: usize) -> usize {
    let mut word = at / 64;
    let mut bits = marks[word].load(Relaxed) & u64::MAX << (at % 64);
    while bits == 0 {
        word += 1;
        if word == marks.len() {
            return word * 64;
        }
        bits = marks[word].load(Relaxed);
    }
    word * 64 + bits.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn free_runs_cover_all_unmarked_cells(
            class in 0..crate::classes::CLASSES,
            marked in proptest::collection::btree_set(0..MARKS, 0..300),
        ) {
            let blocks = Blocks::new(1 << 30, PER_SPAN).unwrap();
            let class = AllocationClass::all().nth(class).unwrap();
            let step = class.bytes() / GRAIN;
            let cells = MARKS / step;
            let live: Vec<usize> = marked.into_iter().map(|at| at % cells).collect();
            for cell in &live {
                blocks.mark::<true>(Offset(BLOCK * 3 + cell * class.bytes()));
            }
            let mut free = Vec::new();
            let mut from = 0;
            while let Some((at, end)) = blocks.free_run(3, class, from) {
                prop_assert!(at < end && at % step == 0 && end % step == 0);
                free.extend((at..end).step_by(step).map(|mark| mark / step));
                from = end;
            }
            let want: Vec<usize> = (0..cells).filter(|cell| !live.contains(cell)).collect();
            prop_assert_eq!(free, want);
        }

        #[test]
        fn leaving_holes_yields_whole_lines(
            class in 0..3_usize,
            marked in proptest::collection::btree_set(0..MARKS, 0..900),
        ) {
            let blocks = Blocks::new(1 << 30, PER_SPAN).unwrap();
            let class = AllocationClass::of(Layout::Slots, 2 << class).unwrap();
            let step = class.bytes() / GRAIN;
            let live: Vec<usize> = marked.into_iter().map(|at| at / step * step).collect();
            for mark in &live {
                blocks.mark::<true>(Offset(BLOCK * 3 + mark * GRAIN));
            }
            let mut free = Vec::new();
            let mut from = 0;
            while let Some((at, end)) = blocks.run_to_hand_out(3, class, from) {
                free.extend((at..end).step_by(LINE));
                from = end;
            }
            let lines = (0..MARKS).step_by(LINE);
            let want: Vec<usize> = lines.filter(|line| !live.iter().any(|it| it / LINE * LINE == *line)).collect();
            prop_assert_eq!(blocks.bytes_to_hand_out(3, class), want.len() * LINE * GRAIN);
            prop_assert_eq!(free, want);
            blocks.leave_holes(false);
            prop_assert_eq!(blocks.run_to_hand_out(3, class, 0), blocks.free_run(3, class, 0));
        }
    }

    #[test]
    fn block_state_round_trips() {
        let class = AllocationClass::of(Layout::Custom, 2048).unwrap();
        let block = BlockState::cells(class, true).with_next(2047);
        assert_eq!((block.class(), block.next(), block.is_clean()), (Some(class), 2047, true));
        assert_eq!((block.unclean().next(), block.unclean().is_clean()), (2047, false));
        let large = BlockState::large(Layout::Weak, 1 << 40);
        assert_eq!((large.words(), large.layout(), large.is_large()), (1 << 40, Layout::Weak, true));
        assert_eq!(BlockState::NONE.class(), None);
    }
}
