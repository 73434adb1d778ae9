//! Tables beside the heap: metadata never lies in the memory it describes, and goes with the heap.

use core::marker::PhantomData;
use core::ops::Index;
use largesse_pages::{MapError, PageKind, Reserved, SPAN};

/// A type for which all zero bytes are a valid value, and that may be written through a shared
/// reference.
///
/// # Safety
/// As it says.
pub(crate) unsafe trait Zeroed {}

/// `len` values, all zero at first. Pages of the table that are never written cost nothing.
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

    /// A value.
    ///
    /// # Safety
    /// `at` is within the table.
    #[inline]
    pub(crate) unsafe fn get_unchecked(&self, at: usize) -> &T {
        // SAFETY: the caller's promise, and as in `slice`.
        unsafe { self.range.start().cast::<T>().add(at).as_ref() }
    }

    /// The first of `count` values from `at` on.
    #[inline]
    pub(crate) fn slice(&self, at: usize, count: usize) -> &[T] {
        assert!(at <= self.len && count <= self.len - at, "outside of the table");
        // SAFETY: the range is committed for `len` values, zero at first, which `Zeroed` makes valid.
        unsafe { core::slice::from_raw_parts(self.range.start().cast::<T>().as_ptr().add(at), count) }
    }
}

impl<T: Zeroed> Index<usize> for Side<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: usize) -> &T {
        assert!(at < self.len, "outside of the table");
        // SAFETY: as in `slice`.
        unsafe { self.range.start().cast::<T>().add(at).as_ref() }
    }
}
