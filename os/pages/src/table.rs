//! Puts tables of fixed length in mappings of their own, so that metadata never lies in the memory it describes.

use core::marker::PhantomData;
use core::ptr::NonNull;

/// A type for which all zero bytes are a valid value.
///
/// # Safety
/// Zero bytes are a valid value, and the type has no destructor.
pub unsafe trait Zeroed {}

// SAFETY: zero is a byte.
unsafe impl Zeroed for u8 {}

/// A table of `len` values, all zero at first, in a mapping of its own. Its pages take no memory until they are
/// written to.
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
    /// Maps a table of `len` zero values, or returns `None` if the kernel refuses the address space. The memory is
    /// never freed.
    pub fn new(len: usize) -> Option<Table<T>> {
        let start = crate::mapping_at(len * size_of::<T>())?.cast();
        Some(Table { start, len, owns: PhantomData })
    }
}

impl Table<u8> {
    /// Maps a table of `len` zeros for reading only. Reading it needs no page fault and takes no memory, because the
    /// kernel uses one page of zeros for all of its pages. Returns `None` if the kernel refuses the address space.
    pub fn zeros(len: usize) -> Option<Table<u8>> {
        let table = Table::new(len)?;
        table.iter().step_by(crate::base_page()).for_each(|byte| _ = core::hint::black_box(*byte));
        Some(table)
    }
}

impl<T> core::ops::Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping has `len` values, initially zero, which `Zeroed` makes valid; it is page-aligned and is
        // never unmapped.
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
    fn table_starts_zero_keeps_writes() {
        let mut table = Table::<u32>::new(10_000).unwrap();
        assert!(table.iter().all(|&value| value == 0));
        table[9_999] = 5;
        assert_eq!((table[9_999], table.len()), (5, 10_000));
    }
}
