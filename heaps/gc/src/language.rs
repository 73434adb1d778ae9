//! What a language tells the heap.

use crate::Tracer;
use core::ptr::NonNull;

/// What a slot of an object holds. Which words are references is for the [`Language`] to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Word(pub u64);

/// What the words of an object are. The block records it, not the object, so that a cons needs no
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Every word is a slot: the collector asks [`Language::reference`] and nothing else.
    Slots,
    /// No word is a slot: numbers, text.
    Opaque,
    /// [`Language::trace`] shows which words are slots.
    Custom,
    /// Every word is a slot that keeps nothing alive: it is set to [`Language::CLEARED`] when what it
    /// refers to is gone.
    Weak,
}

impl Layout {
    /// All of them, in the order of their numbers.
    pub const ALL: [Layout; 4] = [Layout::Slots, Layout::Opaque, Layout::Custom, Layout::Weak];
}

/// What the heap needs to know of a language.
///
/// The collector calls these while every thread that uses the heap stands still, from several of its
/// own threads at once.
///
/// # Safety
/// `reference` answers with the start of an object that the heap handed out, or an address outside of
/// the heap, which is passed over; `Word(0)` and [`CLEARED`](Language::CLEARED) refer to nothing. `trace`
/// and `roots` show every slot through which the language may reach an object later.
pub unsafe trait Language: Send + Sync + Sized + 'static {
    /// What a weak slot holds when its object is gone.
    const CLEARED: Word = Word(0);

    /// The object that a word refers to, without any tag; `None` when the word is no reference.
    fn reference(word: Word) -> Option<NonNull<u64>>;

    /// Show every slot of an object of [`Layout::Custom`]. It may still be as it was handed out: all zeros.
    ///
    /// # Safety
    /// `object` is alive, and nobody writes to it during the call.
    unsafe fn trace(&self, object: NonNull<u64>, tracer: &mut Tracer<'_, Self>);

    /// Show the slots that are roots for every thread: symbol tables, constants of compiled code.
    fn roots(&self, tracer: &mut Tracer<'_, Self>);
}
