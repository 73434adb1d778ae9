//! Exports the C functions on ranges of memory.

use super::{advice, far_range, moves, protect, range};
use crate::answer::{Answer, is_error, refused};
use crate::errno::Errno;
use crate::heap::LargeHeap;
use crate::{causes, heap, limit_state, near_mappings, near_statics};
use core::ffi::{c_int, c_uint, c_void};
use core::ops::Range;
use largesse_report::Cause;

/// Converts a result of the kernel to the C library's convention: an error sets `errno` and becomes -1.
pub(crate) fn told(answer: Answer) -> Answer {
    if is_error(answer) {
        Errno(-answer as c_int).put();
        return -1;
    }
    answer
}

/// Implements `munmap(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> c_int {
    // SAFETY: the caller's promise.
    told(unsafe { moves::unmap(at, len) }) as c_int
}

/// Implements `mprotect(2)`, also on far memory.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mprotect(at: *mut c_void, len: usize, protection: c_int) -> c_int {
    // SAFETY: the caller's promise.
    told(unsafe { protect(at, len, protection) }) as c_int
}

/// Implements `pkey_mprotect(2)`. If it names a key, it fails with `EINVAL` on memory that is or may become far:
/// threads of this library read and write its pages, and have no rights by that key.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pkey_mprotect(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    key: c_int,
) -> c_int {
    if key == -1 {
        // SAFETY: the caller's promise; this key stands for `mprotect`.
        return unsafe { mprotect(at, len, protection) };
    }
    let is_ours = |all: &Range<usize>| far_range(at, len).is_some() || may_become_far(all);
    range(at, len).iter().for_each(near_statics::leave_near);
    if range(at, len).is_some_and(|all| is_ours(&all)) {
        causes::note(Cause::FarAdvice);
        return told(refused(libc::EINVAL)) as c_int;
    }
    // SAFETY: the caller's promise.
    told(unsafe { largesse_pages::raw_pkey_mprotect(at, len, protection, key) }) as c_int
}

/// Returns whether any of the addresses is a mapping or a block that becomes far near a limit.
fn may_become_far(at: &Range<usize>) -> bool {
    let is_mapping = near_mappings::with(at, |_| ()).is_some();
    is_mapping || may_become_far_block(at)
}

fn may_become_far_block(at: &Range<usize>) -> bool {
    let is_block = |heap: &LargeHeap| heap.owns(at.start) || heap.owns(at.end - 1);
    limit_state::is_watched() && heap::heap().is_some_and(is_block)
}

/// Implements `mremap(2)`. The last argument is used with `MREMAP_FIXED` only.
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

/// Implements `madvise(2)`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn madvise(at: *mut c_void, len: usize, what: c_int) -> c_int {
    let near = |all| {
        near_statics::advised(&all, what);
        near_mappings::with(&all, |near| near.advise(&all, what))
    };
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

/// Implements `mlock(2)`, which fails with `ENOMEM` on far memory, and on blocks that may become far. Mappings and
/// static arrays that are locked stay near.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlock(at: *const c_void, len: usize) -> c_int {
    lock(at, len, 0)
}

/// Implements `mlock2(2)`, as [`mlock`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlock2(at: *const c_void, len: usize, flags: c_uint) -> c_int {
    lock(at, len, flags.cast_signed())
}

/// Implements `mlockall(2)`, which fails with `ENOMEM` if there is far memory, or may be.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mlockall(flags: c_int) -> c_int {
    if heap::far().is_some() || limit_state::is_watched() {
        return not_locked();
    }
    told(largesse_pages::raw_mlock(None, flags)) as c_int
}

fn lock(at: *const c_void, len: usize, flags: c_int) -> c_int {
    let page = largesse_pages::base_page();
    // The kernel locks every page that the range touches, so the start is rounded down.
    let start = at.map_addr(|at| at & !(page - 1));
    let from_start = len.saturating_add(at.addr() - start.addr());
    let all = range(start, from_start);
    if far_range(start, from_start).is_some() || all.as_ref().is_some_and(may_become_far_block) {
        return not_locked();
    }
    all.iter().for_each(near_statics::leave_near);
    let by_kernel = || largesse_pages::raw_mlock(Some((at, len)), flags);
    let near = |all| near_mappings::with(&all, |near| near.lock_pages(&all, by_kernel));
    told(all.and_then(near).unwrap_or_else(by_kernel)) as c_int
}

fn not_locked() -> c_int {
    causes::note(Cause::FarNotLocked);
    told(refused(libc::ENOMEM)) as c_int
}
