//! A store in this machine's own memory, for tests and for measuring: no store is faster.

use crate::{Fork, PageStore, StoreError};
use largesse_pages::{MapError, PageKind, Reserved, SPAN};

/// A reserved range as large as the far one. It is locked where that is allowed: a store whose own
/// pages may be paged out could deadlock the machine.
#[derive(Debug)]
pub struct MemoryStore {
    range: Reserved,
}

impl MemoryStore {
    /// A store for `len` bytes of far memory.
    pub fn new(len: usize) -> Result<MemoryStore, MapError> {
        let range = Reserved::new(len.next_multiple_of(SPAN), SPAN)?;
        Ok(MemoryStore { range })
    }

    fn at(&self, at: u64, len: usize) -> *mut u8 {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        assert!(at <= self.range.len() && len <= self.range.len() - at, "outside of the store");
        // SAFETY: inside the range, as was just checked.
        unsafe { self.range.start().as_ptr().add(at) }
    }
}

impl PageStore for MemoryStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        let full = |_| StoreError::Full { wanted: len };
        let (at, len) =
            (usize::try_from(at).unwrap_or(usize::MAX), usize::try_from(len).unwrap_or(usize::MAX));
        let (start, end) = (at / SPAN * SPAN, (at + len).next_multiple_of(SPAN));
        self.range.commit(start, end - start, PageKind::Thp).map_err(full)?;
        let _ = self.range.lock(start, end - start); // where that is allowed
        Ok(())
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        // SAFETY: inside the range and reserved; the pager never moves the same bytes twice at once.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.at(at, into.len()), into.len()) };
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        // SAFETY: as above.
        unsafe { self.at(at, from.len()).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.at(at, len);
        // SAFETY: the bytes are unwanted, says the trait. What is refused stays.
        let _ = unsafe { self.range.purge(usize::try_from(at).unwrap_or(0), len) };
    }

    /// Private memory is a snapshot by itself. Locks do not come along; they would copy everything.
    fn fork(&self, _step: Fork) -> Result<(), StoreError> {
        Ok(())
    }
}
