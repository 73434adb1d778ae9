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
    /// The class that defines the method, and its definition; nil, if no class does.
    pub(super) found: (u64, u64),
}

/// Returns the index of the entry for a class and a selector.
#[inline]
pub(super) fn place(class: Value, selector: Value) -> usize {
    // The upper bits of a product by this number depend on all bits of both addresses.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (class.0 ^ selector.0.rotate_left(24)).wrapping_mul(MIX);
    (mixed >> (64 - CACHED_METHODS.ilog2())) as usize
}
