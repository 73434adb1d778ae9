//! Blocks: what each holds, and which of its cells are marked.

use crate::side::{Side, Zeroed};
use crate::verify::POISON;
use crate::{Lane, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use largesse_pages::{MapError, SPAN};

/// Bytes of a block, the unit of the ledger.
pub const BLOCK: usize = 32 << 10;
/// Words of a block.
pub(crate) const WORDS: usize = BLOCK / 8;
/// Blocks of a span.
pub(crate) const PER_SPAN: usize = SPAN / BLOCK;
/// Bytes for which there is one mark: every object starts at a multiple of this.
pub(crate) const GRAIN: usize = 16;
/// Marks of a block.
pub(crate) const MARKS: usize = BLOCK / GRAIN;
/// Marks of a cache line.
const LINE: usize = 64 / GRAIN;
/// Bytes whose marks lie in one word.
pub(crate) const GROUP: usize = 64 * GRAIN;
/// Words of marks of a block.
const MARK_WORDS: usize = MARKS / 64;

/// The number of a block, counted from the start of the heap.
pub(crate) type BlockNumber = u32;

/// Bytes from the start of the heap to an address within it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offset(usize);

impl Offset {
    pub(crate) const fn get(self) -> usize {
        self.0
    }
}

/// What a block holds, in one word.
///
/// `words << 16 | next << 4 | clean << 3 | large << 2 | layout`: words of a cell, or of the large object that
/// starts here (0 where none does); the first mark from which free cells are looked for; whether what was
/// not handed out reads as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block(u64);

impl Block {
    /// Free, or within a large object.
    pub(crate) const NONE: Block = Block(0);

    pub(crate) const fn cells(lane: Lane, clean: bool) -> Block {
        Block((lane.words() as u64) << 16 | (clean as u64) << 3 | lane.layout() as u64)
    }

    pub(crate) const fn large(layout: Layout, words: usize) -> Block {
        Block((words as u64) << 16 | 1 << 2 | layout as u64)
    }

    /// Words of a cell, or of the large object.
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

    /// The lane of a block of cells.
    pub(crate) fn lane(self) -> Option<Lane> {
        if self.is_large() || self.words() == 0 { None } else { Lane::of(self.layout(), self.words()) }
    }

    /// Free cells are looked for from this mark on.
    pub(crate) const fn next(self) -> usize {
        (self.0 >> 4 & 0xfff) as usize
    }

    pub(crate) const fn with_next(self, next: usize) -> Block {
        Block(self.0 & !0xfff0 | (next as u64) << 4)
    }

    pub(crate) const fn unclean(self) -> Block {
        Block(self.0 & !(1 << 3))
    }

    /// Blocks that a large object takes.
    pub(crate) const fn span_of_large(words: usize) -> usize {
        words.div_ceil(WORDS)
    }
}

// SAFETY: zero is a number, and atomics may be written through shared references.
unsafe impl Zeroed for AtomicU64 {}

/// The tables of all blocks. Entries belong to whom the block belongs to: the ledger's lock, the thread it is
/// delegated to, or the collection while the world stands still; each hands the other on with more than
/// `Relaxed`.
#[derive(Debug)]
pub(crate) struct Blocks {
    start: usize,
    bytes: usize,
    table: Side<AtomicU64>,
    marks: Side<AtomicU64>,
    /// See [`leave_holes`](Blocks::leave_holes).
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

    /// Whether, of cells that are smaller than a cache line, only whole lines are handed out. Then no thread writes to
    /// lines in which others read what is older, and what is made at once lies close together.
    pub(crate) fn leave_holes(&self, yes: bool) {
        self.leaves_holes.store(yes, Relaxed);
    }

    fn leaves_holes(&self, lane: Lane) -> bool {
        LINE.is_multiple_of(lane.bytes() / GRAIN) && self.leaves_holes.load(Relaxed)
    }

    /// The address of a block.
    pub(crate) fn address(&self, block: BlockNumber) -> usize {
        self.start + block as usize * BLOCK
    }

    /// How far an address is into the heap; `None` when it is outside.
    #[inline]
    pub(crate) fn offset(&self, address: usize) -> Option<Offset> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.bytes).then_some(Offset(offset))
    }

    /// The block at an offset.
    #[inline]
    pub(crate) fn at_offset(&self, offset: Offset) -> Block {
        // SAFETY: an offset is within the heap, and the table has all its blocks.
        Block(unsafe { self.table.get_unchecked(offset.0 / BLOCK) }.load(Relaxed))
    }

    pub(crate) fn get(&self, block: BlockNumber) -> Block {
        Block(self.table[block as usize].load(Relaxed))
    }

    pub(crate) fn set(&self, block: BlockNumber, what: Block) {
        self.table[block as usize].store(what.0, Relaxed);
    }

    /// Mark the object at an offset; `false` when it was marked before. `SHARED`: others mark, too.
    #[inline]
    pub(crate) fn mark<const SHARED: bool>(&self, offset: Offset) -> bool {
        let bit = 1 << (offset.0 / GRAIN % 64);
        let word = self.mark_word(offset);
        // Most references lead to what is marked already: look before writing.
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

    /// The word of marks that the object at an offset has its mark in.
    #[inline]
    pub(crate) fn group(&self, offset: Offset) -> Group<'_> {
        let word = self.mark_word(offset);
        let before = word.load(Relaxed);
        Group { word, number: offset.0 / GRAIN / 64, before, bits: before }
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

    /// Forget the marks of a block.
    pub(crate) fn clear_marks(&self, block: BlockNumber) {
        self.marks_of(block).iter().for_each(|word| word.store(0, Relaxed));
    }

    /// Number of marked objects that start in a block.
    pub(crate) fn count_marks(&self, block: BlockNumber) -> usize {
        self.marks_of(block).iter().map(|word| word.load(Relaxed).count_ones() as usize).sum()
    }

    /// The next run of free cells of `lane` in a block from mark `from` on: first mark and the mark behind it.
    pub(crate) fn free_run(&self, block: BlockNumber, lane: Lane, from: usize) -> Option<(usize, usize)> {
        let step = lane.bytes() / GRAIN;
        let end = MARKS / step * step;
        let marks = self.marks_of(block);
        let marked = |at: usize| marks[at / 64].load(Relaxed) & 1 << (at % 64) != 0;
        let mut at = from;
        while at < end && marked(at) {
            at += step;
        }
        (at < end).then(|| (at, next_mark(marks, at).min(end)))
    }

    /// As [`free_run`](Blocks::free_run), of what is handed out.
    pub(crate) fn run_to_hand_out(
        &self,
        block: BlockNumber,
        lane: Lane,
        from: usize,
    ) -> Option<(usize, usize)> {
        let mut from = from;
        loop {
            let (at, end) = self.free_run(block, lane, from)?;
            if !self.leaves_holes(lane) {
                return Some((at, end));
            }
            let lines = (at.next_multiple_of(LINE), end / LINE * LINE);
            if lines.0 < lines.1 {
                return Some(lines);
            }
            from = end;
        }
    }

    /// Bytes of cells that can be handed out of a block that was swept.
    pub(crate) fn bytes_to_hand_out(&self, block: BlockNumber, lane: Lane) -> usize {
        if !self.leaves_holes(lane) {
            return BLOCK - self.count_marks(block) * lane.bytes();
        }
        let used_lines = |word: &AtomicU64| {
            let pairs = word.load(Relaxed);
            let pairs = pairs | pairs >> 1;
            // One bit for every four.
            ((pairs | pairs >> 2) & 0x1111_1111_1111_1111).count_ones() as usize
        };
        BLOCK - self.marks_of(block).iter().map(used_lines).sum::<usize>() * LINE * GRAIN
    }

    /// Free cells of a block that were not handed out yet.
    pub(crate) fn free_cells(&self, block: BlockNumber, lane: Lane) -> usize {
        let step = lane.bytes() / GRAIN;
        let mut from = self.get(block).next();
        let mut cells = 0;
        while let Some((at, end)) = self.run_to_hand_out(block, lane, from) {
            cells += (end - at) / step;
            from = end;
        }
        cells
    }

    /// Overwrite what is dead in a block that is in use and delegated to nobody.
    pub(crate) fn poison(&self, block: BlockNumber) {
        let state = self.get(block);
        let Some(lane) = state.lane() else {
            if self.count_marks(block) == 0 {
                self.overwrite(block, 0, state.words() / 2);
            }
            return;
        };
        let mut from = 0;
        while let Some((at, end)) = self.free_run(block, lane, from) {
            self.overwrite(block, at, end);
            from = end;
        }
    }

    fn overwrite(&self, block: BlockNumber, from: usize, to: usize) {
        for mark in from..to {
            let dead = object_at(self.address(block) + mark * GRAIN).cast();
            // SAFETY: in a usable block, where nothing is alive, and the world stands still.
            unsafe { dead.write([POISON; 2]) };
        }
    }

    fn marks_of(&self, block: BlockNumber) -> &[AtomicU64] {
        self.marks.slice(block as usize * MARK_WORDS, MARK_WORDS)
    }
}

/// A word of marks, written back after several were set: a list whose pairs lie side by side would otherwise wait, at
/// each, for what was written at the one before.
pub(crate) struct Group<'a> {
    word: &'a AtomicU64,
    /// Of the word, counted from the start of the heap.
    number: usize,
    before: u64,
    bits: u64,
}

impl Group<'_> {
    /// Whether the object at an offset has its mark here.
    #[inline]
    pub(crate) fn has(&self, offset: Offset) -> bool {
        offset.0 / GRAIN / 64 == self.number
    }

    /// As [`Blocks::mark`], of an object that has its mark here.
    #[inline]
    pub(crate) fn mark(&mut self, offset: Offset) -> bool {
        let bit = 1 << (offset.0 / GRAIN % 64);
        let first_time = self.bits & bit == 0;
        self.bits |= bit;
        first_time
    }

    /// Whether the object at an offset, which has its mark here, is marked.
    #[inline]
    pub(crate) fn is_marked(&self, offset: Offset) -> bool {
        self.bits & 1 << (offset.0 / GRAIN % 64) != 0
    }

    /// Write the marks back. `shared`: others mark, too. `false`: one of them marked the object at the offset, which was
    /// marked here, before.
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

/// The object at an address of the heap.
#[inline]
pub(crate) fn object_at(address: usize) -> NonNull<u64> {
    let object = core::ptr::with_exposed_provenance_mut(address);
    // SAFETY: objects lie in the backing's range, which does not start at zero.
    unsafe { NonNull::new_unchecked(object) }
}

/// The first mark that is set from `at` on, or the end.
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
        fn free_runs_are_what_no_mark_covers(
            class in 0..crate::classes::LANES,
            marked in proptest::collection::btree_set(0..MARKS, 0..300),
        ) {
            let blocks = Blocks::new(1 << 30, PER_SPAN).unwrap();
            let lane = Lane::all().nth(class).unwrap();
            let step = lane.bytes() / GRAIN;
            let cells = MARKS / step;
            let live: Vec<usize> = marked.into_iter().map(|at| at % cells).collect();
            for cell in &live {
                blocks.mark::<true>(Offset(BLOCK * 3 + cell * lane.bytes()));
            }
            let mut free = Vec::new();
            let mut from = 0;
            while let Some((at, end)) = blocks.free_run(3, lane, from) {
                prop_assert!(at < end && at % step == 0 && end % step == 0);
                free.extend((at..end).step_by(step).map(|mark| mark / step));
                from = end;
            }
            let want: Vec<usize> = (0..cells).filter(|cell| !live.contains(cell)).collect();
            prop_assert_eq!(free, want);
        }

        #[test]
        fn with_holes_left_what_is_handed_out_are_whole_lines(
            class in 0..3_usize,
            marked in proptest::collection::btree_set(0..MARKS, 0..900),
        ) {
            let blocks = Blocks::new(1 << 30, PER_SPAN).unwrap();
            let lane = Lane::of(Layout::Slots, 2 << class).unwrap();
            let step = lane.bytes() / GRAIN;
            let live: Vec<usize> = marked.into_iter().map(|at| at / step * step).collect();
            for mark in &live {
                blocks.mark::<true>(Offset(BLOCK * 3 + mark * GRAIN));
            }
            let mut free = Vec::new();
            let mut from = 0;
            while let Some((at, end)) = blocks.run_to_hand_out(3, lane, from) {
                free.extend((at..end).step_by(LINE));
                from = end;
            }
            let lines = (0..MARKS).step_by(LINE);
            let want: Vec<usize> = lines.filter(|line| !live.iter().any(|it| it / LINE * LINE == *line)).collect();
            prop_assert_eq!(blocks.bytes_to_hand_out(3, lane), want.len() * LINE * GRAIN);
            prop_assert_eq!(free, want);
            blocks.leave_holes(false);
            prop_assert_eq!(blocks.run_to_hand_out(3, lane, 0), blocks.free_run(3, lane, 0));
        }
    }

    #[test]
    fn a_block_says_what_it_was_given() {
        let lane = Lane::of(Layout::Custom, 2048).unwrap();
        let block = Block::cells(lane, true).with_next(2047);
        assert_eq!((block.lane(), block.next(), block.is_clean()), (Some(lane), 2047, true));
        assert_eq!((block.unclean().next(), block.unclean().is_clean()), (2047, false));
        let large = Block::large(Layout::Weak, 1 << 40);
        assert_eq!((large.words(), large.layout(), large.is_large()), (1 << 40, Layout::Weak, true));
        assert_eq!(Block::NONE.lane(), None);
    }
}
