//! Defines the interface a language implements: references, objects and roots.

use crate::Tracer;
use core::ptr::NonNull;

/// A word is the contents of a slot of an object. The [`Language`] decides whether a word is a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Word(pub u64);

/// Tells the kind of words in an object. It is recorded per block, so that a cons cell needs no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Every word is a slot, which the collector passes to [`Language::reference`] without calling `trace`.
    Slots,
    /// No word is a slot: numbers or text.
    Opaque,
    /// [`Language::trace`] shows the collector the slots.
    Custom,
    /// Every word is a weak slot: it keeps nothing alive, and is set to [`Language::CLEARED`] when its object dies.
    Weak,
}

impl Layout {
    /// Lists all layouts, in the order of their numbers.
    pub const ALL: [Layout; 4] = [Layout::Slots, Layout::Opaque, Layout::Custom, Layout::Weak];
}

/// A language implements this interface for the heap.
///
/// The collector calls these methods while every thread of the heap is stopped, from several worker threads at once.
///
/// # Safety
/// `reference` returns the start of an object that the heap allocated, or an address outside of the heap, which is
/// ignored; `Word(0)` and [`CLEARED`](Language::CLEARED) refer to nothing. `trace`
/// and `roots` show every slot through which the language may reach an object later.
pub unsafe trait Language: Send + Sync + Sized + 'static {
    /// This word replaces a weak slot whose object died.
    const CLEARED: Word = Word(0);

    /// Returns the object that a word refers to, without any tag, or `None` when the word is not a reference.
    fn reference(word: Word) -> Option<NonNull<u64>>;

    /// Passes every slot of an object of [`Layout::Custom`] to the tracer. The object may be all zeros still.
    ///
    /// # Safety
    /// `object` is alive, and no thread writes to it during the call.
    unsafe fn trace(&self, object: NonNull<u64>, tracer: &mut Tracer<'_, Self>);

    /// Passes the slots that are global roots to the tracer: symbol tables, constants of compiled code.
    fn roots(&self, tracer: &mut Tracer<'_, Self>);
}
