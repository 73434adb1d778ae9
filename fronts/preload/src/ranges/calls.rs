//! Exports the C functions on ranges of memory.

use super::{advice, far_range, moves, protect, range};
use crate::answer::{Answer, is_error, refused};
use crate::errno::Errno;
use crate::near_mappings;
use crate::{causes, heap};
use core::ffi::{c_int, c_uint, c_void};
use largesse_report::Cause;

/// Converts a result of the kernel to the C library's convention: an error sets `errno` and becomes -1.
pub(crate) fn told(answer: Answer) -> Answer {
    if is_error(answer) {
        Errno(-answer as c_int).put();
        return -1;
    }
    answer
}

/// Serves `munmap(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    told(unsafe { moves::unmap(at, len) }) as c_int
}

/// Serves `mprotect(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's promise.
    told(unsafe { protect(at, len, protection) }) as c_int
}

/// Serves `mremap(2)`. The last argument is used with `MREMAP_FIXED` only.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let answer = unsafe { moves::remap(old, old_len, new_len, flags, new) };
    core::ptr::with_exposed_provenance_mut(told(answer).cast_unsigned())
}

/// Serves `madvise(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn madvise(at: *mut c_void, len: usize, what: c_int) -> c_int {
    let near = |all| near_mappings::with(&all, |near| near.advise(&all, what));
    if let Some(answer) = range(at, len).and_then(near) {
        if answer == refused(libc::EINVAL) {
            causes::note(Cause::FarAdvice);
        }
        return told(answer) as c_int;
    }
    told(match far_range(at, len) {
        Some((far, range)) => advice::follow(far, &range, what),
        // SAFETY: the caller's promise.
        None => unsafe { largesse_pages::raw_madvise(at, len, what) },
    }) as c_int
}

/// Serves `mlock(2)`, which fails with `ENOMEM` on far memory.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlock(at: *const c_void, len: usize) -> c_int {
    lock(at, len, 0)
}

/// Serves `mlock2(2)`, as [`mlock`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlock2(at: *const c_void, len: usize, flags: c_uint) -> c_int {
    lock(at, len, flags.cast_signed())
}

/// Serves `mlockall(2)`, which fails with `ENOMEM` if there is far memory.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if heap::far().is_some() {
        return not_locked();
    }
    told(largesse_pages::raw_mlock(None, flags)) as c_int
}

fn lock(at: *const c_void, len: usize, flags: c_int) -> c_int {
    let page = largesse_pages::base_page();
    // The kernel locks every page that the range touches, so the start is rounded down.
    let start = at.map_addr(|at| at & !(page - 1));
    let from_start = len.saturating_add(at.addr() - start.addr());
    if far_range(start, from_start).is_some() {
        return not_locked();
    }
    // Locked memory stays near.
    range(start, from_start).and_then(|all| near_mappings::with(&all, |near| near.leave_near(&all)));
    told(largesse_pages::raw_mlock(Some((at, len)), flags)) as c_int
}

fn not_locked() -> c_int {
    causes::note(Cause::FarNotLocked);
    told(refused(libc::ENOMEM)) as c_int
}
