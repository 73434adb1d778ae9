//! Memory that somebody else mapped and left to us to look after.

use crate::{Area, MapError, MapOp, base_page, sys};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};

/// A mapped range that is not ours to unmap.
#[derive(Debug)]
pub struct Lent(Area);

impl core::ops::Deref for Lent {
    type Target = Area;

    fn deref(&self) -> &Area {
        &self.0
    }
}

impl Lent {
    /// The `len` bytes from `start` on.
    ///
    /// # Safety
    /// `start` is at a page, and the range is mapped, readable and writable while the value lives.
    #[must_use]
    pub const unsafe fn new(start: NonNull<u8>, len: usize) -> Lent {
        Lent(Area::new(start, len))
    }

    /// Have memory behind a part, without changing what it holds.
    pub fn populate(&self, offset: usize, len: usize) -> Result<(), MapError> {
        let at = self.at(offset, len);
        match sys::populate(at, len) {
            // Before Linux 5.14, where not even the advice for no bytes at all is known.
            Err(libc::EINVAL) if sys::populate(at, 0).is_err() => {}
            other => return other.map_err(|errno| MapError { op: MapOp::Populate, len, errno }),
        }
        for page in (0..len).step_by(base_page()) {
            // SAFETY: inside the range, which is mapped; every byte may be touched atomically.
            unsafe { AtomicU8::from_ptr(at.as_ptr().add(page)) }.fetch_or(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Keep a part in memory.
    pub fn lock(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::lock(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Lock, len, errno })
    }

    /// Give the memory behind a part of a shared mapping back, in all processes; it reads as zero.
    ///
    /// # Safety
    /// Nobody uses what it holds.
    pub unsafe fn remove(&self, offset: usize, len: usize) -> Result<(), MapError> {
        sys::remove(self.at(offset, len), len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn removed_memory_is_gone_for_everybody_and_can_be_used_again() {
        let len = 4 * base_page();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever the kernel likes.
        let at = unsafe { crate::raw_mmap(core::ptr::null_mut(), len, 3, flags, -1, 0) };
        let at = NonNull::new(core::ptr::with_exposed_provenance_mut(at.unsigned_abs())).unwrap();
        // SAFETY: mapped just now, and never unmapped.
        let lent = unsafe { Lent::new(at, len) };
        lent.populate(0, len).unwrap();
        let _ = lent.lock(0, len); // where that is allowed; locked memory is removed as well
        // SAFETY: only this test uses the mapping.
        unsafe {
            at.write_bytes(7, len);
            lent.remove(base_page(), base_page()).unwrap();
            assert_eq!(at.add(base_page()).read(), 0);
            assert_eq!(at.add(base_page() - 1).read(), 7);
        }
        lent.populate(0, len).unwrap();
    }
}
