//! Memory of several processes: a file without a name, mapped by each of them.

use crate::sys::{self, Descriptor, shared};
use crate::wait::Among;
use crate::{Area, MapError, MapOp, SPAN, base_page};
use core::ffi::{CStr, c_int};
use core::sync::atomic::AtomicU32;

/// A file in memory. Its length is fixed and its name is for readers of `/proc` only: it goes when the last
/// process that has it or maps it has gone.
#[derive(Debug)]
pub struct MemoryFile {
    file: Descriptor,
    len: usize,
}

impl MemoryFile {
    /// A new file of `len` bytes, none of which takes memory yet.
    pub fn new(name: &CStr, len: usize) -> Result<MemoryFile, MapError> {
        let len = len.next_multiple_of(base_page());
        let file = shared::memory_file(name, len).map_err(|errno| publish(len, errno))?;
        Ok(MemoryFile { file, len })
    }

    /// The file behind a descriptor that another process sent; owned from now on.
    pub fn received(fd: c_int) -> Result<MemoryFile, MapError> {
        let mut file = MemoryFile { file: Descriptor(fd), len: 0 };
        // SAFETY: a plain structure that the call fills.
        let mut about: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: a structure to fill.
        if unsafe { libc::fstat(fd, &raw mut about) } != 0 {
            return Err(publish(0, sys::errno()));
        }
        file.len = usize::try_from(about.st_size).unwrap_or(0);
        Ok(file)
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// It has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its number, to be sent.
    #[must_use]
    pub const fn descriptor(&self) -> c_int {
        self.file.0
    }

    /// Whoever maps it from now on can only read it.
    pub fn seal_for_readers(&self) -> Result<(), MapError> {
        shared::seal_for_readers(self.file.0).map_err(|errno| publish(self.len, errno))
    }

    /// All of it, at a multiple of 2 MiB if it is as long as that.
    pub fn map(&self, writable: bool) -> Result<SharedMapping, MapError> {
        let align = if self.len < SPAN { base_page() } else { SPAN };
        let start = shared::map_shared(self.file.0, self.len, align, writable)
            .map_err(|errno| publish(self.len, errno))?;
        Ok(SharedMapping(Area::new(start, self.len)))
    }

    /// Memory for these bytes, the caller's to account for; the error is the kernel's `errno`.
    pub fn allocate(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::allocate(self.file.0, at, len)
    }

    /// The same by large pages, where the kernel can, for bytes that have no memory. `mapping` is a writable one of this file.
    pub fn allocate_large(&self, mapping: &SharedMapping, at: usize, len: usize) -> Result<(), i32> {
        for span in (at.next_multiple_of(SPAN)..=at + len).step_by(SPAN).filter(|it| it + SPAN <= at + len) {
            // Only a span with a page in it can move to a large one; where it cannot, small ones follow.
            self.allocate(span, base_page())?;
            // SAFETY: inside the mapping (`at` checks), and its page was just allocated.
            unsafe { mapping.at(span, SPAN).write_volatile(0) };
            let _ = mapping.collapse(span, SPAN);
        }
        self.allocate(at, len)
    }

    /// The bytes' memory goes back, in every process. They read as zero.
    pub fn punch(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::punch(self.file.0, at, len)
    }
}

/// A mapping of a [`MemoryFile`]. It stays when the file is closed.
#[derive(Debug)]
pub struct SharedMapping(Area);

impl core::ops::Deref for SharedMapping {
    type Target = Area;

    fn deref(&self) -> &Area {
        &self.0
    }
}

impl SharedMapping {
    /// Whole spans that have memory move to large pages, where the kernel can; holes in them are filled.
    /// The error is the kernel's `errno`.
    fn collapse(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::collapse(self.at(at, len), len)
    }

    /// Keeps the bytes in memory; pages that are not there yet come. The error is the kernel's `errno`.
    pub fn lock(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::lock_now(self.at(at, len), len)
    }

    /// They may go again.
    pub fn unlock(&self, at: usize, len: usize) {
        shared::unlock(self.at(at, len), len);
    }

    /// Whether a forked child has the mapping, or nothing at its addresses.
    pub fn inherited(&self, yes: bool) -> Result<(), MapError> {
        sys::inherited(self.start(), self.len(), yes).map_err(|errno| publish(self.len(), errno))
    }
}

impl Drop for SharedMapping {
    fn drop(&mut self) {
        sys::release(self.start(), self.len());
    }
}

const fn publish(len: usize, errno: i32) -> MapError {
    MapError { op: MapOp::Publish, len, errno }
}

/// Sleep while `word`, which other processes may map too, holds `value`; at most so many milliseconds (may
/// return early).
pub fn wait_across(word: &AtomicU32, value: u32, milliseconds: Option<u32>) {
    sys::futex_wait(word, value, milliseconds.map(u64::from), Among::Processes);
}

/// Wake whoever sleeps there, in whatever process.
pub fn wake_across(word: &AtomicU32) {
    sys::futex_wake(word, c_int::MAX, Among::Processes);
}

/// A descriptor that becomes readable when the process ends; the error is the kernel's `errno`.
pub fn open_process(pid: i32) -> Result<c_int, i32> {
    shared::process(pid).map(Descriptor::into_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_are_one_memory_and_a_hole_reads_as_zero() {
        let file = MemoryFile::new(c"test", 3 * SPAN).unwrap();
        let (one, two) = (file.map(true).unwrap(), file.map(true).unwrap());
        file.allocate_large(&one, SPAN, SPAN).unwrap();
        // SAFETY: inside the mappings, which only this test has.
        unsafe {
            one.start().add(SPAN).write(7);
            assert_eq!(two.start().add(SPAN).read(), 7);
            file.punch(SPAN, SPAN).unwrap();
            assert_eq!(two.start().add(SPAN).read(), 0);
        }
    }

    #[test]
    fn nobody_changes_its_length_and_readers_cannot_write() {
        let file = MemoryFile::new(c"test", SPAN).unwrap();
        // SAFETY: numbers only.
        assert_eq!(unsafe { libc::ftruncate(file.descriptor(), 0) }, -1);
        let own = file.map(true).unwrap();
        file.seal_for_readers().unwrap();
        assert!(file.map(true).is_err());
        let reader = file.map(false).unwrap();
        // SAFETY: inside the mappings, which only this test has.
        unsafe {
            own.start().write(5);
            assert_eq!(reader.start().read(), 5);
        }
    }
}
