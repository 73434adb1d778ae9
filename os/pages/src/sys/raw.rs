//! Makes system calls for a program, and returns the kernel's own answer: a value, or a negated errno.
#![expect(clippy::cast_sign_loss, reason = "numbers of the kernel's interface")]

use super::call::raw_call;
use super::linux::{errno, system_madvise, system_mmap, system_mprotect, system_mremap, system_munmap};
use core::ffi::{c_int, c_void};

/// Makes the system call `mmap` and returns the address or `-errno`.
///
/// # Safety
/// The requirements are those of `mmap(2)`.
pub(crate) unsafe fn raw_mmap(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    address_or_error(unsafe { system_mmap(at, len, protection, flags, fd, offset) })
}

fn address_or_error(got: *mut c_void) -> isize {
    if got == libc::MAP_FAILED { -(errno() as isize) } else { got.expose_provenance().cast_signed() }
}

fn answer(rc: c_int) -> isize {
    if rc == -1 { -(errno() as isize) } else { rc as isize }
}

/// Makes the system call `munmap` and returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `munmap(2)`.
pub(crate) unsafe fn raw_munmap(at: *mut c_void, len: usize) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { system_munmap(at, len) })
}

/// Makes the system call `madvise` and returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `madvise(2)`.
pub(crate) unsafe fn raw_madvise(at: *mut c_void, len: usize, advice: c_int) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { system_madvise(at, len, advice) })
}

/// Makes the system call `mprotect` and returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `mprotect(2)`.
pub(crate) unsafe fn raw_mprotect(at: *mut c_void, len: usize, protection: c_int) -> isize {
    // SAFETY: the caller's promise.
    answer(unsafe { system_mprotect(at, len, protection) })
}

/// Makes the system call `pkey_mprotect` and returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `pkey_mprotect(2)`.
pub(crate) unsafe fn raw_pkey_mprotect(at: *mut c_void, len: usize, protection: c_int, key: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { raw_call(libc::SYS_pkey_mprotect, [at.addr(), len, protection as usize, key as usize, 0, 0]) }
}

/// Makes the system call `mremap` and returns the address or `-errno`.
///
/// # Safety
/// The requirements are those of `mremap(2)`.
pub(crate) unsafe fn raw_mremap(
    at: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    to: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    address_or_error(unsafe { system_mremap(at, old_len, new_len, flags, to) })
}

/// Locks a range with the `flags` of `mlock2`, or all memory with the `flags` of `mlockall` if there is no range.
/// Returns zero or `-errno`.
pub(crate) fn raw_mlock(range: Option<(*const c_void, usize)>, flags: c_int) -> isize {
    let (call, [first, second, third]) = match range {
        Some((at, len)) if flags == 0 => (libc::SYS_mlock, [at.addr(), len, 0]),
        Some((at, len)) => (libc::SYS_mlock2, [at.addr(), len, flags as usize]),
        None => (libc::SYS_mlockall, [flags as usize, 0, 0]),
    };
    // SAFETY: locking changes no contents.
    unsafe { raw_call(call, [first, second, third, 0, 0, 0]) }
}
