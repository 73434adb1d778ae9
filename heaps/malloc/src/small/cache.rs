//! Hands out small blocks in one thread, without an atomic exchange.

use super::class::{CLASSES, TABLE};
use super::slab::TakenWord;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The free blocks that a thread has taken, and the slabs that it owns: one for each class.
///
/// Only its thread uses a cache, or the only thread of a forked child that returns the caches of the others. The child
/// may see a cache in the middle of a change, so that every order of stores below leaves a valid one: at worst, blocks
/// are in no cache.
#[derive(Debug)]
pub struct SmallCache {
    runs: [BlockRun; CLASSES],
}

/// The blocks of one word of a slab.
#[derive(Debug)]
struct BlockRun {
    /// A bit for each block that is free, as in the slab's word.
    free: AtomicU64,
    /// A bit for each free block that is zero; those of other blocks mean nothing.
    zero: AtomicU64,
    /// Address of the word's first block.
    first: AtomicUsize,
    /// Number of the word, or [`NO_WORD`].
    word: AtomicU32,
    /// Number of the slab that the thread owns, plus one; 0 if it owns none.
    slab: AtomicU32,
}

/// The number of no word, after the slab has changed.
const NO_WORD: u32 = u32::MAX;

impl Default for SmallCache {
    fn default() -> SmallCache {
        SmallCache::new()
    }
}

impl SmallCache {
    /// Creates a cache without blocks.
    #[must_use]
    pub const fn new() -> SmallCache {
        SmallCache {
            runs: [const {
                BlockRun {
                    free: AtomicU64::new(0),
                    zero: AtomicU64::new(0),
                    first: AtomicUsize::new(0),
                    word: AtomicU32::new(NO_WORD),
                    slab: AtomicU32::new(0),
                }
            }; CLASSES],
        }
    }

    /// Removes a block of a class. Returns its address, and whether it is zero; `None` if there is none.
    // Relaxed, here and below: only one thread at a time uses a cache.
    #[inline]
    pub(super) fn take(&self, class: usize) -> Option<(usize, bool)> {
        let run = &self.runs[class];
        let free = run.free.load(Ordering::Relaxed);
        if free == 0 {
            return None;
        }
        run.free.store(free & (free - 1), Ordering::Relaxed);
        let block = free.trailing_zeros() as usize;
        let address = run.first.load(Ordering::Relaxed) + block * TABLE[class].size;
        Some((address, run.zero.load(Ordering::Relaxed) >> block & 1 == 1))
    }

    /// Takes back a block of a slab, if the cache has the block's word. The lowest free block of the word is handed out
    /// next, so that a program that allocates and frees in turns touches no more memory than it needs at a time. Returns
    /// `None` if the cache does not have the word, and otherwise whether the block was in use.
    #[inline]
    pub(super) fn put(&self, class: usize, slab: u32, block: usize) -> Option<bool> {
        let run = &self.runs[class];
        let (word, bit) = (block / 64, 1 << (block % 64));
        if self.slab(class) != Some(slab) || run.word.load(Ordering::Relaxed) as usize != word {
            return None;
        }
        let free = run.free.load(Ordering::Relaxed);
        run.zero.store(run.zero.load(Ordering::Relaxed) & !bit, Ordering::Release);
        run.free.store(free | bit, Ordering::Release);
        Some(free & bit == 0)
    }

    /// Returns the slab of a class that the thread owns.
    pub(super) fn slab(&self, class: usize) -> Option<u32> {
        self.runs[class].slab.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Sets the slab of a class, of which the cache has no block.
    pub(super) fn set_slab(&self, class: usize, slab: Option<u32>) {
        self.runs[class].word.store(NO_WORD, Ordering::Release);
        self.runs[class].slab.store(slab.map_or(0, |slab| slab + 1), Ordering::Release);
    }

    /// Adds the blocks of a word, the first of which is at the address `first`. The cache has no other block of the
    /// class.
    pub(super) fn add(&self, class: usize, taken: TakenWord, first: usize) {
        let run = &self.runs[class];
        // Release: in this order, also in a forked child.
        run.first.store(first, Ordering::Release);
        run.word.store(taken.word as u32, Ordering::Release);
        run.zero.store(if taken.is_zero { u64::MAX } else { 0 }, Ordering::Release);
        run.free.store(taken.free, Ordering::Release);
    }

    /// Removes all blocks and the slab of a class. The cache's thread has ended, or calls this.
    pub(super) fn remove(&self, class: usize) -> Option<(u32, TakenWord)> {
        let run = &self.runs[class];
        let free = run.free.swap(0, Ordering::Acquire);
        let word = run.word.load(Ordering::Relaxed) as usize;
        let is_zero = run.zero.load(Ordering::Relaxed) == u64::MAX;
        let slab = self.slab(class)?;
        self.set_slab(class, None);
        Some((slab, TakenWord { word, free, is_zero }))
    }
}
