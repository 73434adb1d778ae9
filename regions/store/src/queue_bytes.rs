//! The memory of a queue, which its transfers read and write.

use core::any::Any;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use largesse_pages::Table;

/// The memory of a queue, accessed by its address alone: a reference to all of it would alias the parts that transfers
/// in flight use.
pub struct QueueBytes {
    start: *mut u8,
    len: usize,
    /// A value that owns the memory and must live as long as it is used.
    _owner: Box<dyn Any + Send>,
}

// SAFETY: the memory may be used from any thread, and its owner too.
unsafe impl Send for QueueBytes {}

impl fmt::Debug for QueueBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QueueBytes({})", self.len)
    }
}

impl QueueBytes {
    /// Reserves `len` bytes, all zero. Returns `None` if the kernel has no memory.
    #[must_use]
    pub fn new(len: usize) -> Option<QueueBytes> {
        let mut memory = Table::<u8>::new(len)?;
        Some(QueueBytes { start: memory.as_mut_ptr(), len, _owner: Box::new(memory) })
    }

    /// Uses the `len` bytes from `start` on. Several queues may share them if no two of the queues have transfers of
    /// the same bytes.
    ///
    /// # Safety
    ///
    /// The bytes are readable and writable, by any thread, until `owner` is dropped.
    #[must_use]
    pub unsafe fn over(start: NonNull<u8>, len: usize, owner: impl Any + Send) -> QueueBytes {
        QueueBytes { start: start.as_ptr(), len, _owner: Box::new(owner) }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the byte at offset `at`, which is at most the length.
    pub fn address(&self, at: usize) -> *mut u8 {
        assert!(at <= self.len, "{at} is outside of the memory");
        self.start.wrapping_add(at)
    }

    /// Returns the bytes of `range`.
    ///
    /// # Safety
    ///
    /// No other thread, and no transfer in flight, uses any of these bytes.
    pub unsafe fn bytes(&mut self, range: Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} is outside of the memory");
        // SAFETY: inside the memory, which lives as long as its owner; only the caller uses these bytes.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}
