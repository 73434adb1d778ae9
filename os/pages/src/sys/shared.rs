//! Makes system calls for memory that several processes map, and for process descriptors.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of the kernel's interface")]

use super::call::system_call;
use super::files::Descriptor;
use super::linux::{checked, errno, release, reserve, system_madvise, system_mmap};
use core::ffi::{CStr, c_int};
use core::ptr::NonNull;

const F_SEAL_FUTURE_WRITE: c_int = 0x10;
const MADV_COLLAPSE: c_int = 25;

/// Creates a memory file of `len` bytes, and seals it against changes of its length.
pub(crate) fn memory_file(name: &CStr, len: usize) -> Result<Descriptor, i32> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: the name is a C string.
    let file = Descriptor::made(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the descriptor is open.
    checked(unsafe { libc::ftruncate(file.0, len as i64) })?;
    seal(file.0, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW)?;
    Ok(file)
}

fn seal(fd: c_int, seals: c_int) -> Result<(), i32> {
    // SAFETY: numbers only.
    checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })
}

/// Restricts all mappings that are made of the file from now on to reading.
pub(crate) fn seal_for_readers(fd: c_int) -> Result<(), i32> {
    seal(fd, F_SEAL_FUTURE_WRITE)
}

pub(crate) fn map_shared(fd: c_int, len: usize, align: usize, writable: bool) -> Result<NonNull<u8>, i32> {
    let range = reserve(len, align)?;
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range was reserved just now, and no other code knows it.
    let at = unsafe { system_mmap(range.as_ptr().cast(), len, protection, flags, fd, 0) };
    if at == libc::MAP_FAILED {
        let errno = errno();
        release(range, len);
        return Err(errno);
    }
    Ok(range)
}

pub(crate) fn allocate(fd: c_int, at: usize, len: usize) -> Result<(), i32> {
    // SAFETY: numbers only.
    checked(unsafe { libc::fallocate(fd, 0, at as i64, len as i64) })
}

pub(crate) fn punch(fd: c_int, at: usize, len: usize) -> Result<(), i32> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: numbers only.
    checked(unsafe { libc::fallocate(fd, mode, at as i64, len as i64) })
}

/// Collapses a range into large pages. Needs Linux 6.1.
pub(crate) fn collapse(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the contents stay the same on a large page.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_COLLAPSE) })
}

/// Populates and locks a range at once, unlike `lock`, which locks each page at its first touch.
pub(crate) fn lock_now(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: locking our own range changes no contents.
    let rc = unsafe { system_call(libc::SYS_mlock2, [at.addr().get(), len, 0, 0, 0, 0]) };
    checked(rc as c_int)
}

pub(crate) fn unlock(at: NonNull<u8>, len: usize) {
    // SAFETY: unlocking our own range changes no contents; a refusal leaves it locked.
    unsafe { libc::munlock(at.as_ptr().cast(), len) };
}

pub(crate) fn process(pid: i32) -> Result<Descriptor, i32> {
    // SAFETY: numbers only.
    Descriptor::made(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as c_int)
}
