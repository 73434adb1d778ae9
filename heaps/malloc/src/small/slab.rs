//! Records which blocks of a slab are free, without writing to the slab.
//!
//! A slab is a piece of memory with blocks of one size. Its record is elsewhere, so that freeing a block whose page was
//! swapped out does not fetch the page. Each block has a bit in a word of 64, which is set while the block is free. Any
//! thread frees a block by setting its bit. One thread at a time, the *owner*, takes blocks, 64 at once, by exchanging
//! a word for zero. An *idle* slab has no size class and no block: any class of its kind may take it.
//!
//! ```text
//!             first block freed: the thread that sets ATTACHED lists the slab
//!   full ───────────────────────────────────────────────────────────► listed
//!    ▲  not ATTACHED, no owner                                          │ a thread removes it from the list
//!    └───────────────────────────────── owned ◄────────────────────────┘
//!      no word has a free block: `detach`
//! ```
//! The *summary* has a bit for each word that may have free blocks, and `ATTACHED` while the slab is owned or listed.
//! Both are in one atomic, so that no slab with free blocks is forgotten between a free and a `detach`.

use super::class::Class;
use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bit of the summary that is set while the slab has an owner or is in a list.
const ATTACHED: u64 = 1 << 63;

/// Number of words in a slab's record. A class uses one word for each 64 blocks of a slab, so at most 63 of them.
pub(crate) const WORDS: usize = 64;

/// A bit for each of 64 blocks, set while the block is free and in no cache.
#[derive(Debug, Default)]
pub(crate) struct Word(AtomicU64);

impl Word {
    /// Returns whether a block of the word is free and in no cache.
    #[inline]
    pub(crate) fn is_free(&self, block: usize) -> bool {
        // Relaxed: `Slab::free` decides. This finds a block that its thread frees after another one did.
        self.0.load(Ordering::Relaxed) & 1 << (block % 64) != 0
    }
}

/// The record of a slab.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    /// Words that may have a free block, and [`ATTACHED`].
    summary: AtomicU64,
    /// Words of which no block was handed out yet, so that all of their blocks are zero. Only the owner uses it.
    untouched: AtomicU64,
    /// Number of the next slab in a list, plus one.
    pub(crate) next: AtomicU32,
    /// Number of the size class, plus one; 0 while the slab has none.
    class: AtomicU8,
}

#[cfg(not(loom))]
// SAFETY: zero is a number, and neither type has a destructor.
unsafe impl largesse_pages::Zeroed for Slab {}
#[cfg(not(loom))]
// SAFETY: as above.
unsafe impl largesse_pages::Zeroed for Word {}

/// Tells what freeing a block did to its slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Whether the slab was full. It is attached now, and the caller must list it.
    pub(crate) attached: bool,
    /// Whether all blocks of the word are free now.
    pub(crate) word_is_full: bool,
}

/// Blocks that the owner of a slab has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenWord {
    pub(crate) word: usize,
    /// A bit for each block that was free.
    pub(crate) free: u64,
    /// Whether these blocks are zero.
    pub(crate) is_zero: bool,
}

impl Slab {
    /// Returns the number of the slab's class; `None` if it has none.
    #[inline]
    pub(crate) fn class(&self) -> Option<usize> {
        // Relaxed: a thread with a block of the slab got it from the owner, directly or not.
        usize::from(self.class.load(Ordering::Relaxed)).checked_sub(1)
    }

    /// Gives an idle slab to a class, for its owner.
    pub(crate) fn prepare(&self, number: usize, class: &Class, words: &[Word]) {
        for (word, bits) in words.iter().enumerate().take(class.words()) {
            bits.0.store(class.full(word), Ordering::Relaxed); // Relaxed: only the owner knows the slab
        }
        let all = all_words(class);
        let untouched = self.untouched.load(Ordering::Relaxed);
        self.untouched.store(untouched & all, Ordering::Relaxed);
        self.class.store(number as u8 + 1, Ordering::Relaxed);
        // Release: pairs with the Acquire of a later owner.
        self.summary.store(ATTACHED | all, Ordering::Release);
    }

    /// Takes the class from a slab whose blocks are all free, and which is in no list. `is_zero` tells whether its
    /// memory reads as zero.
    pub(crate) fn make_idle(&self, is_zero: bool) {
        self.untouched.store(if is_zero { u64::MAX } else { 0 }, Ordering::Relaxed); // Relaxed: nobody knows it
        self.class.store(0, Ordering::Relaxed);
    }

    /// Frees a block; returns `None` if it is free already.
    #[inline]
    pub(crate) fn free(&self, words: &[Word], class: &Class, block: usize) -> Option<Freed> {
        let (word, bit) = (block / 64, 1 << (block % 64));
        // Release: the thread that takes the block sees what was written to it before. Acquire: pairs with the exchange
        // in `take_word`, so that the summary's bit is set after the owner cleared it.
        let before = words[word].0.fetch_or(bit, Ordering::AcqRel);
        if before & bit != 0 {
            return None;
        }
        let attached = before == 0 && self.add_to_summary(word);
        Some(Freed { attached, word_is_full: before | bit == class.full(word) })
    }

    /// Records that a word may have free blocks. Returns whether this attached the slab.
    fn add_to_summary(&self, word: usize) -> bool {
        // Release: pairs with the Acquire of the owner, which then finds the block. Acquire: the thread that lists the
        // slab comes after the owner that detached it.
        self.summary.fetch_or(ATTACHED | 1 << word, Ordering::AcqRel) & ATTACHED == 0
    }

    /// Takes the free blocks of a word; `None` if no word has any. For the owner.
    pub(crate) fn take_word(&self, words: &[Word]) -> Option<TakenWord> {
        loop {
            // Acquire: pairs with the Release in `add_to_summary`.
            let with_free = self.summary.load(Ordering::Acquire) & !ATTACHED;
            if with_free == 0 {
                return None;
            }
            let word = with_free.trailing_zeros() as usize;
            self.summary.fetch_and(!(1 << word), Ordering::AcqRel);
            // Acquire: pairs with the Release in `free`. Release: pairs with its Acquire.
            let free = words[word].0.swap(0, Ordering::AcqRel);
            // The bit of a word that another owner has emptied may be set late.
            if free != 0 {
                let untouched = self.untouched.load(Ordering::Relaxed); // Relaxed: only the owner uses it
                self.untouched.store(untouched & !(1 << word), Ordering::Relaxed);
                return Some(TakenWord { word, free, is_zero: untouched & 1 << word != 0 });
            }
        }
    }

    /// Returns blocks of a word that the owner has taken and not handed out.
    pub(crate) fn put_back(&self, words: &[Word], taken: TakenWord) {
        if taken.is_zero && taken.free == u64::MAX {
            self.untouched.fetch_or(1 << taken.word, Ordering::Relaxed); // Relaxed: as in `take_word`
        }
        // As in `free`.
        if words[taken.word].0.fetch_or(taken.free, Ordering::AcqRel) == 0 {
            self.add_to_summary(taken.word);
        }
    }

    /// Ends the ownership of a slab without free blocks; returns `false` if it has some, and keeps its owner.
    pub(crate) fn detach(&self) -> bool {
        // Release: pairs with the Acquire in `add_to_summary`.
        self.summary.compare_exchange(ATTACHED, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Returns whether all blocks are free and in no cache.
    pub(crate) fn is_empty(&self, words: &[Word], class: &Class) -> bool {
        // Acquire: pairs with the Release in `free`.
        self.summary.load(Ordering::Relaxed) & !ATTACHED == all_words(class)
            && (0..class.words()).all(|word| words[word].0.load(Ordering::Acquire) == class.full(word))
    }
}

/// Returns the summary of a slab all of whose words have free blocks.
fn all_words(class: &Class) -> u64 {
    (1 << class.words()) - 1
}

#[cfg(all(test, loom))]
mod tests {
    extern crate std;
    use super::super::class::TABLE;
    use super::*;
    use loom::sync::Arc;
    use std::vec::Vec;

    /// Blocks of 4 KiB, of which a slab has 16.
    const CLASS: usize = 27;

    fn slab() -> Arc<(Slab, [Word; 1])> {
        let slab = (Slab::default(), [Word::default()]);
        assert_eq!(TABLE[CLASS].size, 4096);
        slab.0.prepare(CLASS, &TABLE[CLASS], &slab.1);
        Arc::new(slab)
    }

    // Fails with a detach that ignores the words' bits (`swap(0)`): "The summary has no bit for a free block."
    #[test]
    fn no_free_block_is_forgotten() {
        loom::model(|| {
            let slab = slab();
            let taken = slab.0.take_word(&slab.1).unwrap();
            assert_eq!(taken.free.count_ones(), 16);
            let freeing: Vec<_> = [3, 5]
                .into_iter()
                .map(|block| {
                    let slab = slab.clone();
                    loom::thread::spawn(move || slab.0.free(&slab.1, &TABLE[CLASS], block).unwrap().attached)
                })
                .collect();
            let early = slab.0.take_word(&slab.1).map_or(0, |taken| taken.free.count_ones());
            let detached = slab.0.detach();
            let listed = freeing.into_iter().map(|thread| u32::from(thread.join().unwrap())).sum::<u32>();
            let late = slab.0.take_word(&slab.1).map_or(0, |taken| taken.free.count_ones());
            assert_eq!(early + late, 2, "The summary has no bit for a free block.");
            if detached {
                assert_eq!(listed, u32::from(late > 0), "times that the slab was listed");
            } else {
                assert_eq!(listed, 0, "times that a slab with an owner was listed");
            }
        });
    }
}
