//! Defines the address range that every kind of mapping in this crate has.

use core::ptr::NonNull;

/// A contiguous range of addresses, which is one mapping or part of one.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length are not tied to a thread.
unsafe impl Send for Area {}
// SAFETY: as above; the fields never change.
unsafe impl Sync for Area {}

impl Area {
    /// Creates an area of `len` bytes from `start` on. The caller owns these bytes, or follows the rules of their
    /// owner.
    pub(crate) const fn new(start: NonNull<u8>, len: usize) -> Area {
        Area { start, len }
    }

    /// Returns the first address.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is zero.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address `offset` bytes into the area. Panics unless `len` bytes from there on lie inside the area.
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset <= self.len && len <= self.len - offset, "outside of the range");
        // SAFETY: the assertion above keeps the offset inside the range, which is one mapping.
        unsafe { self.start.add(offset) }
    }
}
