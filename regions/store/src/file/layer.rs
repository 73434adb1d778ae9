//! One layer of a file store: a single file.

use super::refused::{FileRefused, errno};
use super::unnamed;
use crate::{Layer, PageStore, Ranges, StoreError};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use std::path::Path;

const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// Divisor of the free space: the room of all pages of the layers below is reserved only if it takes at most this part
/// of it.
const FREE_DIVISOR: u64 = 4;

/// Number of calls in a row that transfer nothing after which a transfer fails.
pub(super) const MAX_IDLE: u8 = 3;

/// An open file, as another thread can find it: its number in a descriptor table, and whether it uses the page cache.
pub(super) type Handle = (c_int, bool);

/// The type of `pread(2)`, which tests replace.
pub(super) type Pread = unsafe extern "C" fn(c_int, *mut c_void, usize, i64) -> isize;
/// The type of `pwrite(2)`, which tests replace.
pub(super) type Pwrite = unsafe extern "C" fn(c_int, *const c_void, usize, i64) -> isize;

/// A sparse file without a name, so that nothing of it remains after the process ends in any way. It bypasses the page
/// cache if the file system permits.
#[derive(Debug)]
pub(super) struct File {
    fd: c_int,
    cached: bool,
}

impl File {
    /// Makes a file without a name in the directory of `path`, readable and writable by its owner only.
    pub(super) fn create(path: &Path) -> Result<File, FileRefused> {
        let refuse = |errno| FileRefused::System { path: path.to_owned(), call: "open", errno };
        let (fd, cached) = unnamed::open_in_folder_of(path).map_err(refuse)?;
        let layer = File { fd, cached };
        if layer.lies_in_memory() {
            return Err(FileRefused::InMemory(path.to_owned()));
        }
        Ok(layer)
    }

    fn lies_in_memory(&self) -> bool {
        // SAFETY: a plain structure that the call fills.
        let mut about: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: our own descriptor and a structure to fill.
        let rc = unsafe { libc::fstatfs(self.fd, &raw mut about) };
        rc == 0 && matches!(about.f_type, TMPFS_MAGIC | RAMFS_MAGIC)
    }

    /// Repeats a system call that transfers bytes until all of them are transferred.
    fn transfer(
        &self,
        call: &'static str,
        len: usize,
        step: impl Fn(usize) -> isize,
    ) -> Result<(), StoreError> {
        let (mut done, mut idle) = (0, 0);
        while done < len {
            match usize::try_from(step(done)) {
                Ok(0) if idle == MAX_IDLE => return Err(StoreError::Short { call, wanted: len, done }),
                Ok(0) => idle += 1,
                Ok(more) => (done, idle) = (done + more, 0),
                Err(_) => match errno() {
                    libc::EINTR | libc::EAGAIN => {}
                    errno => return Err(StoreError::System { call, errno }),
                },
            }
        }
        Ok(())
    }

    pub(super) fn read_by(&self, pread: Pread, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let len = into.len();
        let start = into.as_mut_ptr();
        // SAFETY: `done < len`, the length of the buffer.
        self.transfer("pread", len, |done| unsafe {
            let offset = at.cast_signed() + done as i64;
            pread(self.fd, start.add(done).cast(), len - done, offset)
        })?;
        self.uncache(at, len);
        Ok(())
    }

    pub(super) fn write_by(&self, pwrite: Pwrite, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let len = from.len();
        // SAFETY: `done < len`, the length of the buffer.
        self.transfer("pwrite", len, |done| unsafe {
            let offset = at.cast_signed() + done as i64;
            pwrite(self.fd, from.as_ptr().add(done).cast(), len - done, offset)
        })?;
        self.uncache(at, len);
        Ok(())
    }

    /// Removes bytes of the file from the page cache, if the file does not bypass it.
    pub(super) fn uncache(&self, at: u64, len: usize) {
        if self.cached {
            // SAFETY: advice on our own descriptor.
            unsafe { libc::posix_fadvise(self.fd, at.cast_signed(), len as i64, libc::POSIX_FADV_DONTNEED) };
        }
    }

    pub(super) const fn descriptor(&self) -> c_int {
        self.fd
    }

    pub(super) const fn handle(&self) -> Handle {
        (self.fd, self.cached)
    }

    /// Opens the files that `thread` has open, in the descriptor table of the calling thread.
    pub(super) fn open_all(handles: &[Handle], thread: u32) -> Result<Vec<File>, StoreError> {
        let open = |&(fd, cached): &Handle| {
            let path = format!("/proc/self/task/{thread}/fd/{fd}");
            let open = |more| crate::broker::open(Path::new(&path), libc::O_RDWR | more);
            let opened = match open(if cached { 0 } else { libc::O_DIRECT }) {
                // Direct I/O was refused to this process since (see `Linux::knows_pinned`).
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => open(0).map(|fd| (fd, true)),
                opened => opened.map(|fd| (fd, cached)),
            };
            opened.map(|(fd, cached)| File { fd, cached }).map_err(|error| StoreError::System {
                call: "open /proc/self/task/TID/fd",
                errno: error.raw_os_error().unwrap_or(0),
            })
        };
        handles.iter().map(open).collect()
    }

    /// Returns the number of free bytes of the file system.
    fn free_bytes(&self) -> u64 {
        // SAFETY: a plain structure that the call fills.
        let mut about: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: our own descriptor and a structure to fill.
        let rc = unsafe { libc::fstatfs(self.fd, &raw mut about) };
        if rc == 0 { about.f_bavail.saturating_mul(about.f_bsize.cast_unsigned()) } else { 0 }
    }
}

impl PageStore for File {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        if at + len > file_size_limit() {
            return Err(StoreError::Full { wanted: len });
        }
        // SAFETY: our own descriptor.
        let rc = unsafe { libc::fallocate(self.fd, 0, at.cast_signed(), len.cast_signed()) };
        if rc == 0 {
            return Ok(());
        }
        match errno() {
            // Without this call the file system reports a full disk at a write.
            libc::EOPNOTSUPP | libc::ENOSYS => Ok(()),
            libc::ENOSPC | libc::EFBIG | libc::EDQUOT => Err(StoreError::Full { wanted: len }),
            errno => Err(StoreError::System { call: "fallocate", errno }),
        }
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.read_by(libc::pread, at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.write_by(libc::pwrite, at, from)
    }

    fn discard(&self, at: u64, len: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: our own descriptor. A file system without holes keeps the space.
        unsafe { libc::fallocate(self.fd, mode, at.cast_signed(), len.cast_signed()) };
    }
}

impl Layer for File {
    fn make_room(&self, _: Range<u64>, reserved: &Ranges) -> Result<bool, StoreError> {
        if reserved.bytes() <= self.free_bytes() / FREE_DIVISOR {
            // If this fails halfway, later writes report a full disk.
            let _ = reserved.iter().try_for_each(|part| self.reserve(part.start, part.end - part.start));
        }
        Ok(true)
    }
}

/// Returns the current limit on the size of files (`RLIMIT_FSIZE`), in bytes. The kernel checks it whenever a file
/// grows or is written.
fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writing.
    let rc = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    if rc == 0 { limit.rlim_cur } else { u64::MAX }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(self.fd) };
    }
}
