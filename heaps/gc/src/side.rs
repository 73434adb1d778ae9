//! Holds tables that describe memory but lie outside of it (side tables). They are freed with the heap.

use core::marker::PhantomData;
use core::ops::Index;
use largesse_pages::{MapError, PageKind, Reserved, SPAN};

/// A type for which all zero bytes are a valid value, and which may be written through a shared reference.
///
/// # Safety
/// All zero bytes must be a valid value, and writing one through a shared reference must be sound, as for atomics.
pub(crate) unsafe trait Zeroed {}

/// A side table of `len` values, all zero at first. Pages that are never written use no memory.
#[derive(Debug)]
pub(crate) struct Side<T> {
    range: Reserved,
    len: usize,
    values: PhantomData<T>,
}

impl<T: Zeroed> Side<T> {
    pub(crate) fn new(len: usize) -> Result<Side<T>, MapError> {
        let bytes = (len * size_of::<T>()).next_multiple_of(SPAN);
        let range = Reserved::new(bytes, SPAN)?;
        range.commit(0, bytes, PageKind::Small)?;
        Ok(Side { range, len, values: PhantomData })
    }

    /// Returns the value at index `at`.
    ///
    /// # Safety
    /// `at` is below `len`.
    #[inline]
    pub(crate) unsafe fn get_unchecked(&self, at: usize) -> &T {
        // SAFETY: the caller's promise, and as in `slice`.
        unsafe { self.range.start().cast::<T>().add(at).as_ref() }
    }

    /// Returns `count` values from index `at` on.
    #[inline]
    pub(crate) fn slice(&self, at: usize, count: usize) -> &[T] {
        assert!(at <= self.len && count <= self.len - at, "index outside of the table");
        // SAFETY: the range is committed for `len` values, zero at first, which `Zeroed` makes valid.
        unsafe { core::slice::from_raw_parts(self.range.start().cast::<T>().as_ptr().add(at), count) }
    }
}

impl<T: Zeroed> Index<usize> for Side<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: usize) -> &T {
        assert!(at < self.len, "index outside of the table");
        // SAFETY: as in `slice`.
        unsafe { self.range.start().cast::<T>().add(at).as_ref() }
    }
}
