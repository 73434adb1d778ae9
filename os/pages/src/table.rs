//! A fixed table in memory of its own: metadata never lies in the memory it describes.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// A type for which all zero bytes are a valid value.
///
/// # Safety
/// Zero bytes are a valid value, and the type has no destructor.
pub unsafe trait Zeroed {}

// SAFETY: zero is a byte.
unsafe impl Zeroed for u8 {}

/// `len` values, all zero at first. Pages of the table that are never written cost nothing.
#[derive(Debug)]
pub struct Table<T> {
    start: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

// SAFETY: the table owns its memory, which is not tied to a thread.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: sharing the table shares its values, and nothing else.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T: Zeroed> Table<T> {
    /// A table of `len` zeros. `None` when the kernel refuses the address space. The memory is never returned.
    pub fn new(len: usize) -> Option<Table<T>> {
        let start = crate::mapping_at(len * size_of::<T>())?.cast();
        Some(Table { start, len, owns: PhantomData })
    }
}

impl<T> core::ops::Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has `len` values, zero at first, which `Zeroed` makes valid; it is
        // page-aligned and lives for good.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> core::ops::DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut self` makes the slice unique.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SAFETY: zero is a number.
    unsafe impl Zeroed for u32 {}

    #[test]
    fn a_table_starts_as_zeros_and_keeps_what_is_written() {
        let mut table = Table::<u32>::new(10_000).unwrap();
        assert!(table.iter().all(|&value| value == 0));
        table[9_999] = 5;
        assert_eq!((table[9_999], table.len()), (5, 10_000));
    }
}
