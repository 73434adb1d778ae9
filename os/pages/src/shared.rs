//! Shares memory between processes: each of them maps the same file, which has no name in any folder.

use crate::sys::{self, Descriptor, shared};
use crate::wait::Among;
use crate::{Area, MapError, MapOp, SPAN, base_page};
use core::ffi::{CStr, c_int};
use core::sync::atomic::AtomicU32;
use core::time::Duration;

/// A memory file of fixed length, whose name appears in `/proc` only. The kernel frees it when the last process ends
/// that has it open or mapped.
#[derive(Debug)]
pub struct MemoryFile {
    file: Descriptor,
    len: usize,
}

impl MemoryFile {
    /// Creates a file of `len` bytes, rounded up to whole pages, without allocating memory for them.
    pub fn new(name: &CStr, len: usize) -> Result<MemoryFile, MapError> {
        let len = len.next_multiple_of(base_page());
        let file = shared::memory_file(name, len).map_err(|errno| publish(len, errno))?;
        Ok(MemoryFile { file, len })
    }

    /// Takes ownership of a descriptor that another process sent, which must be that of a memory file whose length is
    /// sealed: a mapping beyond the end of a shorter file could not be used.
    pub fn received(fd: c_int) -> Result<MemoryFile, MapError> {
        let mut file = MemoryFile { file: Descriptor(fd), len: 0 };
        // SAFETY: all zero bytes are valid for this plain structure, which the call fills.
        let mut about: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: the structure is writable.
        if unsafe { libc::fstat(fd, &raw mut about) } != 0 {
            return Err(publish(0, sys::errno()));
        }
        // SAFETY: numbers only.
        match unsafe { libc::fcntl(fd, libc::F_GET_SEALS) } {
            ..0 => return Err(publish(0, sys::errno())),
            seals if seals & libc::F_SEAL_SHRINK == 0 => return Err(publish(0, libc::EPERM)),
            _ => {}
        }
        file.len = usize::try_from(about.st_size).unwrap_or(0);
        Ok(file)
    }

    /// Returns the length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is zero.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the descriptor's number, for sending it to another process.
    #[must_use]
    pub const fn descriptor(&self) -> c_int {
        self.file.0
    }

    /// Restricts every mapping that is made of the file from now on to reading.
    pub fn seal_for_readers(&self) -> Result<(), MapError> {
        shared::seal_for_readers(self.file.0).map_err(|errno| publish(self.len, errno))
    }

    /// Maps the whole file. The address is a multiple of 2 MiB if the file is at least as long.
    pub fn map(&self, writable: bool) -> Result<SharedMapping, MapError> {
        let align = if self.len < SPAN { base_page() } else { SPAN };
        let start = shared::map_shared(self.file.0, self.len, align, writable)
            .map_err(|errno| publish(self.len, errno))?;
        Ok(SharedMapping(Area::new(start, self.len)))
    }

    /// Allocates memory for the `len` bytes of the file from offset `at` on. The error is the kernel's `errno`.
    pub fn allocate(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::allocate(self.file.0, at, len)
    }

    /// Allocates memory for those of the `len` bytes from offset `at` on that have none, on large pages where the
    /// kernel can. `mapping` is a writable mapping of this file.
    pub fn allocate_large(&self, mapping: &SharedMapping, at: usize, len: usize) -> Result<(), i32> {
        for span in (at.next_multiple_of(SPAN)..=at + len).step_by(SPAN).filter(|it| it + SPAN <= at + len) {
            // Only a span with a resident page can be collapsed into a large one; otherwise small pages are allocated
            // below.
            self.allocate(span, base_page())?;
            // SAFETY: inside the mapping (`at` checks), and its page was just allocated.
            unsafe { mapping.at(span, SPAN).write_volatile(0) };
            let _ = mapping.collapse(span, SPAN);
        }
        self.allocate(at, len)
    }

    /// Frees the memory of `len` bytes of the file from offset `at` on. They read as zero afterwards, in every
    /// process.
    pub fn punch(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::punch(self.file.0, at, len)
    }
}

/// A mapping of a [`MemoryFile`]. It stays valid when the file is closed.
#[derive(Debug)]
pub struct SharedMapping(Area);

impl core::ops::Deref for SharedMapping {
    type Target = Area;

    fn deref(&self) -> &Area {
        &self.0
    }
}

impl SharedMapping {
    /// Collapses whole allocated spans of the mapping into large pages, where the kernel can. Holes in them are
    /// filled. The error is the kernel's `errno`.
    fn collapse(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::collapse(self.at(at, len), len)
    }

    /// Populates and locks the `len` bytes from offset `at` on. The error is the kernel's `errno`.
    pub fn lock(&self, at: usize, len: usize) -> Result<(), i32> {
        shared::lock_now(self.at(at, len), len)
    }

    /// Unlocks the `len` bytes from offset `at` on, so that the kernel may swap them out again.
    pub fn unlock(&self, at: usize, len: usize) {
        shared::unlock(self.at(at, len), len);
    }

    /// Sets whether a forked child inherits the mapping. If not, its addresses are unmapped in the child.
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

/// Sleeps while `word`, which other processes may map, holds `value`, for at most `wait`. It may return early.
pub fn wait_across(word: &AtomicU32, value: u32, wait: Option<Duration>) {
    sys::futex_wait(word, value, wait, Among::Processes);
}

/// Wakes all sleepers on `word`, in every process.
pub fn wake_across(word: &AtomicU32) {
    sys::futex_wake(word, c_int::MAX, Among::Processes);
}

/// Opens a descriptor that becomes readable when process `pid` ends. The error is the kernel's `errno`.
pub fn open_process(pid: i32) -> Result<c_int, i32> {
    shared::process(pid).map(Descriptor::into_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_share_memory_and_holes() {
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
    fn unsealed_file_is_not_received() {
        let file = MemoryFile::new(c"test", 1).unwrap();
        // SAFETY: numbers only.
        let copy = |fd| unsafe { libc::dup(fd) };
        assert_eq!(MemoryFile::received(copy(file.descriptor())).unwrap().len(), base_page());
        // SAFETY: the name is a C string.
        let unsealed = unsafe { libc::open(c"/proc/self/exe".as_ptr(), libc::O_RDONLY) };
        assert!(MemoryFile::received(unsealed).is_err());
    }

    #[test]
    fn sealed_file_refuses_resize_and_writers() {
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
