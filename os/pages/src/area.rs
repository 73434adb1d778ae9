//! A place in the address space, which every kind of range here has.

use core::ptr::NonNull;

/// Where a range starts, and how long it is.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length: nothing of it is tied to a thread.
unsafe impl Send for Area {}
// SAFETY: as above; it is never changed.
unsafe impl Sync for Area {}

impl Area {
    /// The caller owns the `len` bytes from `start` on, or answers for whoever does.
    pub(crate) const fn new(start: NonNull<u8>, len: usize) -> Area {
        Area { start, len }
    }

    /// First address.
    #[must_use]
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// There is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of a part, which must lie inside.
    pub(crate) fn at(&self, offset: usize, len: usize) -> NonNull<u8> {
        assert!(offset <= self.len && len <= self.len - offset, "outside of the range");
        // SAFETY: the assertion above keeps the offset inside the range, which is one mapping.
        unsafe { self.start.add(offset) }
    }
}
