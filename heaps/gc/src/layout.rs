//! Defines words, and the layouts that say which words of an object are references.

/// The contents of a slot of an object. The [`Language`](crate::Language) decides whether it is a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Word(pub u64);

/// Says which words of an object may be references. It is recorded per block, so that a cons cell needs no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Layout {
    /// Every word is a slot, which the collector passes to [`Language::reference`](crate::Language::reference) without
    /// calling `trace`.
    Slots,
    /// No word is a slot: numbers or text.
    Opaque,
    /// The language shows the slots to the collector in [`Language::trace`](crate::Language::trace).
    Custom,
    /// Every word is a weak slot: it keeps nothing alive, and is set to [`Language::CLEARED`](crate::Language::CLEARED)
    /// when its object dies.
    Weak,
}

impl Layout {
    /// Lists all layouts, in the order of their numbers.
    pub const ALL: [Layout; 4] = [Layout::Slots, Layout::Opaque, Layout::Custom, Layout::Weak];
}
