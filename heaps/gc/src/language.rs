//! Defines the interface between a language and the collector: references, objects and roots, and the tracer to which
//! a language shows them.

use crate::blocks::{Blocks, Offset};
use crate::reached::Reached;
use crate::{Layout, Word};
use core::ptr::NonNull;

/// Tells the collector about a programming language: which words are references, and where the roots are.
///
/// The collector calls these methods while every thread of the heap is stopped, from several worker threads at once.
///
/// # Safety
/// `reference` returns the start of an object that the heap allocated, or an address outside of the heap, which is
/// ignored; `Word(0)` and [`CLEARED`](Language::CLEARED) refer to nothing. `trace`
/// and `roots` show every slot through which the language may reach an object later.
pub unsafe trait Language: Send + Sync + Sized + 'static {
    /// The word that replaces a reference in a weak slot when the object it refers to dies.
    const CLEARED: Word = Word(0);

    /// Returns the object that a word refers to, without any tag, or `None` when the word is not a reference.
    fn reference(word: Word) -> Option<NonNull<u64>>;

    /// Passes every slot of an object of [`Layout::Custom`] to the tracer: words of the object, chosen by nothing but the
    /// object's words. The object may be all zeros still.
    ///
    /// # Safety
    /// `object` is alive, and no thread writes to it during the call.
    unsafe fn trace(&self, object: NonNull<u64>, tracer: &mut Tracer<'_, Self>);

    /// Passes the slots that are global roots to the tracer: symbol tables, constants of compiled code.
    fn roots(&self, tracer: &mut Tracer<'_, Self>);
}

/// Number of objects whose memory is prefetched before they are scanned.
pub(crate) const AHEAD: usize = 8;

/// An object to be scanned, or a part of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) at: NonNull<u64>,
    /// Number of slots from `at` on, [`CUSTOM`] or [`OLD`].
    pub(crate) words: usize,
}

// SAFETY: an address within the heap, which all workers only read while the world is stopped.
unsafe impl Send for Item {}

/// The value of [`Item::words`] for objects whose slots [`Language::trace`] shows.
pub(crate) const CUSTOM: usize = usize::MAX;

/// The value of [`Item::words`] for a part of a block whose marked objects were marked by an earlier collection.
pub(crate) const OLD: usize = usize::MAX - 1;

/// The state of one marking thread. A [`Language`] shows the slots of roots and objects to it.
#[derive(Debug)]
pub struct Tracer<'a, L> {
    pub(crate) language: &'a L,
    pub(crate) blocks: &'a Blocks,
    pub(crate) stack: Vec<Item>,
    /// Ring of items taken from the stack, whose memory is being prefetched. `turn` is the index of the newest.
    pub(crate) ahead: [Option<Item>; AHEAD],
    pub(crate) turn: usize,
    /// Addresses of the reached objects of [`Layout::Weak`].
    pub(crate) weak: Vec<usize>,
    pub(crate) mode: TraceMode,
    /// The objects reached in [`TraceMode::Verify`].
    pub(crate) reached: Reached,
}

/// Selects what a [`Tracer`] does with an object that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceMode {
    /// Marks the object without atomics, as no other worker marks.
    Alone,
    /// Marks the object atomically, as other workers mark, too.
    Together,
    /// Marks nothing, and panics when an invariant is broken.
    Verify,
}

pub(crate) const ALONE: u8 = TraceMode::Alone as u8;
pub(crate) const TOGETHER: u8 = TraceMode::Together as u8;
pub(crate) const VERIFY: u8 = TraceMode::Verify as u8;

impl<'a, L: Language> Tracer<'a, L> {
    pub(crate) fn new(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer {
            language,
            blocks,
            stack: Vec::new(),
            ahead: [None; AHEAD],
            turn: 0,
            weak: Vec::new(),
            mode: TraceMode::Alone,
            reached: Reached::default(),
        }
    }

    /// Creates a tracer that marks nothing, and panics when an invariant is broken.
    pub(crate) fn verifying(language: &'a L, blocks: &'a Blocks) -> Tracer<'a, L> {
        Tracer { mode: TraceMode::Verify, ..Tracer::new(language, blocks) }
    }

    /// Traces the object that a slot or root refers to.
    #[inline]
    pub fn word(&mut self, word: Word) {
        if let Some(object) = L::reference(word) {
            self.object(object);
        }
    }

    /// Traces `words` slots from `start` on.
    ///
    /// # Safety
    /// The slots can be read, and lie in an object of the heap.
    #[inline]
    pub unsafe fn words(&mut self, start: NonNull<u64>, words: usize) {
        if words > 0 {
            self.stack.push(Item { at: start, words });
        }
    }

    /// Marks a reachable object and puts it on the stack.
    #[inline]
    pub(crate) fn object(&mut self, object: NonNull<u64>) {
        let Some(offset) = self.blocks.offset(object.as_ptr().addr()) else { return };
        let item = match self.mode {
            TraceMode::Alone => self.reach::<ALONE>(object, offset),
            TraceMode::Together => self.reach::<TOGETHER>(object, offset),
            TraceMode::Verify => self.reach::<VERIFY>(object, offset),
        };
        self.stack.extend(item);
    }

    /// Marks an object. Returns the item to scan if the object was unmarked before and has slots.
    #[inline(always)]
    pub(crate) fn reach<const MODE: u8>(&mut self, object: NonNull<u64>, offset: Offset) -> Option<Item> {
        let first_time = match MODE {
            ALONE => self.blocks.mark::<false>(offset),
            TOGETHER => self.blocks.mark::<true>(offset),
            _ => self.reached.first_time(object, offset, self.blocks),
        };
        if !first_time {
            return None;
        }
        let block = self.blocks.at_offset(offset);
        if block.layout() == Layout::Slots {
            return Some(Item { at: object, words: block.words() });
        }
        if block.layout() == Layout::Weak {
            self.weak.push(object.as_ptr().expose_provenance());
        }
        (block.layout() == Layout::Custom).then_some(Item { at: object, words: CUSTOM })
    }
}
