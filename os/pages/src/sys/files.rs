//! Reads files of the kernel, and makes memory files by which other processes find a heap.
#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]

use super::linux::{base_page, checked, errno, system_mmap};
use core::ffi::{CStr, c_int};
use core::ptr::{NonNull, null_mut};

/// A file descriptor, which is closed when this is dropped.
#[derive(Debug)]
pub(crate) struct Descriptor(pub(crate) c_int);

impl Descriptor {
    /// Takes ownership of `fd`, the answer of a system call that makes a descriptor. Returns the errno if the call
    /// failed.
    pub(super) fn made(fd: c_int) -> Result<Descriptor, i32> {
        if fd < 0 { Err(errno()) } else { Ok(Descriptor(fd)) }
    }

    /// Returns the descriptor's number. The caller must close it.
    pub(crate) fn into_number(self) -> c_int {
        let number = self.0;
        core::mem::forget(self);
        number
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and open.
        unsafe { libc::close(self.0) };
    }
}

pub(super) fn open(path: &CStr) -> Result<Descriptor, i32> {
    // SAFETY: the path is a C string.
    Descriptor::made(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

/// Reads the start of a small file into `into`, or returns `None` if it cannot be read.
pub(crate) fn read_file<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a [u8]> {
    let file = open(path).ok()?;
    // SAFETY: the buffer has the length given.
    let got = unsafe { libc::read(file.0, into.as_mut_ptr().cast(), into.len()) };
    into.get(..usize::try_from(got).ok()?)
}

/// Copies memory of this process, whatever its protection. Returns whether all of it could be read.
///
/// Readable memory is copied without `/proc`: this takes one system call instead of three, and at the end of this
/// process a thread that waits for the end would spin while the kernel clears the process's `/proc` entries.
pub(crate) fn read_guarded(at: usize, into: &mut [u8]) -> bool {
    if copy_readable(at, into) == into.len() {
        return true;
    }
    let Ok(memory) = open(c"/proc/thread-self/mem") else { return false };
    // SAFETY: the buffer has the length given; the kernel checks what is read.
    let got = unsafe { libc::pread(memory.0, into.as_mut_ptr().cast(), into.len(), at as i64) };
    usize::try_from(got) == Ok(into.len())
}

/// Copies readable memory of this process, and returns the number of bytes copied before the first inaccessible page.
pub(super) fn copy_readable(at: usize, into: &mut [u8]) -> usize {
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let from = libc::iovec { iov_base: core::ptr::with_exposed_provenance_mut(at), iov_len: into.len() };
    let thread = super::thread_id() as usize;
    let arguments = [thread, (&raw const to).addr(), 1, (&raw const from).addr(), 1, 0];
    // SAFETY: the buffer has the length given; the kernel checks what is read.
    usize::try_from(unsafe { super::raw_call(libc::SYS_process_vm_readv, arguments) }).unwrap_or(0)
}

pub(super) fn memory_file(name: &CStr) -> Result<Descriptor, i32> {
    // SAFETY: the name is a C string.
    Descriptor::made(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })
}

/// Maps a new file of `len` bytes, shared and readable by its owner only. Zeros are written, which allocates space on
/// file systems without `fallocate`, too.
pub(crate) fn share_file(path: &CStr, len: usize) -> Result<NonNull<u8>, i32> {
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path is a C string.
    let file = Descriptor::made(unsafe { libc::open(path.as_ptr(), flags, 0o600) })?;
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut written = 0;
    while written < len {
        let part = (len - written).min(ZEROS.len());
        // SAFETY: `ZEROS` has at least `part` bytes.
        let done = unsafe { libc::write(file.0, ZEROS.as_ptr().cast(), part) };
        written += usize::try_from(done).map_err(|_| errno())?;
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of our own file.
    let at = unsafe { system_mmap(null_mut(), len, rights, libc::MAP_SHARED, file.0, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(at.cast()).ok_or(libc::ENOMEM) }
}

pub(crate) fn publish(name: &CStr, bytes: &[u8]) -> Result<NonNull<u8>, i32> {
    let file = memory_file(name)?;
    let len = base_page();
    // SAFETY: `bytes` is readable for its length.
    if unsafe { libc::write(file.0, bytes.as_ptr().cast(), bytes.len()) } != bytes.len() as isize {
        return Err(errno());
    }
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::ftruncate(file.0, len as i64) })?;
    // SAFETY: a new mapping of our own file.
    let at = unsafe { system_mmap(null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.0, 0) };
    if at == libc::MAP_FAILED { Err(errno()) } else { NonNull::new(at.cast()).ok_or(libc::ENOMEM) }
}
