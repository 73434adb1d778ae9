//! The memory of a queue, parts of which transfers read and write.

use core::ops::Range;
use largesse_pages::Table;

/// Memory that is used by its address alone: a reference to all of it would alias the parts of transfers in flight.
#[derive(Debug)]
pub(crate) struct QueueBytes {
    start: *mut u8,
    len: usize,
    _memory: Table<u8>,
}

// SAFETY: the memory belongs to this value, and may be used from any thread.
unsafe impl Send for QueueBytes {}

impl QueueBytes {
    /// Reserves `len` bytes, all zero; `None` if the kernel has no memory.
    pub(crate) fn new(len: usize) -> Option<QueueBytes> {
        let mut memory = Table::new(len)?;
        Some(QueueBytes { start: memory.as_mut_ptr(), len, _memory: memory })
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the byte at `at`, which is at most the length.
    pub(crate) fn address(&self, at: usize) -> *mut u8 {
        assert!(at <= self.len, "{at} is outside of the memory");
        self.start.wrapping_add(at)
    }

    /// Returns the bytes of `range`.
    ///
    /// # Safety
    ///
    /// No transfer in flight uses any of these bytes.
    pub(crate) unsafe fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} is outside of the memory");
        // SAFETY: inside the memory, which lives as long as `self`; only the caller uses these bytes.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
