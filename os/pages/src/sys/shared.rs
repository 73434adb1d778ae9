//! Memory that several processes map, waiting across processes, and processes as descriptors.

#![expect(clippy::disallowed_methods, reason = "this folder is where the ban points to")]
#![expect(clippy::cast_possible_truncation, reason = "numbers of the kernel's interface")]

use super::linux::{checked, errno, release, reserve, system_madvise, system_mmap};
use core::ffi::{CStr, c_int, c_long};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

const F_SEAL_FUTURE_WRITE: c_int = 0x10;
const MADV_COLLAPSE: c_int = 25;

/// A file in memory of a length that nobody can change.
pub(crate) fn memory_file(name: &CStr, len: usize) -> Result<c_int, i32> {
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(errno());
    }
    // SAFETY: the descriptor is open.
    let sized = checked(unsafe { libc::ftruncate(fd, len as i64) });
    let sealed = sized.and_then(|()| seal(fd, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW));
    if sealed.is_err() {
        // SAFETY: our own descriptor, closed once.
        unsafe { libc::close(fd) };
    }
    sealed.map(|()| fd)
}

fn seal(fd: c_int, seals: c_int) -> Result<(), i32> {
    // SAFETY: numbers only.
    checked(unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) })
}

/// Who maps the file from now on can only read it.
pub(crate) fn seal_for_readers(fd: c_int) -> Result<(), i32> {
    seal(fd, F_SEAL_FUTURE_WRITE)
}

pub(crate) fn map_shared(fd: c_int, len: usize, align: usize, writable: bool) -> Result<NonNull<u8>, i32> {
    let range = reserve(len, align)?;
    let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
    let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range was reserved just now, and nobody else knows it.
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

/// Linux 6.1 and later.
pub(crate) fn collapse(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: the same contents on a large page.
    checked(unsafe { system_madvise(at.as_ptr().cast(), len, MADV_COLLAPSE) })
}

/// Present and locked, unlike `lock`, which waits for the first touch.
pub(crate) fn lock_now(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: locking our own range changes no contents.
    let rc = unsafe { libc::syscall(libc::SYS_mlock2, at.as_ptr(), len, 0 as c_long) };
    checked(rc as c_int)
}

pub(crate) fn unlock(at: NonNull<u8>, len: usize) {
    // SAFETY: unlocking our own range changes no contents; a refusal leaves it locked.
    unsafe { libc::munlock(at.as_ptr().cast(), len) };
}

/// Sleep while the word, which other processes map too, holds `value`.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, milliseconds: Option<u32>) {
    let timeout = milliseconds.map(|milliseconds| libc::timespec {
        tv_sec: (milliseconds / 1000).into(),
        tv_nsec: c_long::from(milliseconds % 1000) * 1_000_000,
    });
    let timeout = timeout.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the word and the timeout outlive the call; a spurious return is allowed.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, timeout) };
}

pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: waking reads nothing but the address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, c_int::MAX) };
}

pub(crate) fn process(pid: i32) -> Result<c_int, i32> {
    // SAFETY: numbers only.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 { Err(errno()) } else { Ok(fd as c_int) }
}
