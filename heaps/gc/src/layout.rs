//! Words, and the kinds of words that objects hold.

/// A word is the contents of a slot of an object. The [`Language`](crate::Language) decides whether it is a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Word(pub u64);

/// Tells the kind of words in an object. It is recorded per block, so that a cons cell needs no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Every word is a slot, which the collector passes to [`Language::reference`](crate::Language::reference) without
    /// calling `trace`.
    Slots,
    /// No word is a slot: numbers or text.
    Opaque,
    /// [`Language::trace`](crate::Language::trace) shows the collector the slots.
    Custom,
    /// Every word is a weak slot: it keeps nothing alive, and is set to [`Language::CLEARED`](crate::Language::CLEARED)
    /// when its object dies.
    Weak,
}

impl Layout {
    /// Lists all layouts, in the order of their numbers.
    pub const ALL: [Layout; 4] = [Layout::Slots, Layout::Opaque, Layout::Custom, Layout::Weak];
}
