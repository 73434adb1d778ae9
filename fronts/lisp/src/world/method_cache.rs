//! Remembers methods that were looked up.

use crate::value::Value;

/// Number of entries of a thread's method cache.
pub(crate) const CACHED_METHODS: usize = 4096;

/// A cached lookup is valid while its epoch is the world's.
#[derive(Clone, Copy, Default)]
pub(crate) struct CachedMethod {
    pub(super) epoch: u64,
    pub(super) class: u64,
    pub(super) selector: u64,
    /// The class that defines the method, and its definition.
    pub(super) found: (u64, u64),
}

/// Returns the index of the entry for a class and a selector.
#[inline]
pub(super) fn place(class: Value, selector: Value) -> usize {
    ((class.0 >> 4) ^ (selector.0 >> 6)) as usize % CACHED_METHODS
}
