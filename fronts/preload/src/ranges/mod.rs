//! Serves the calls that map, unmap, move, lock and advise ranges of far memory.
//!
//! Far memory keeps a state of every page, of which the kernel does not know, so calls that change the contents of
//! pages are intercepted. `mprotect` is not, since the fault handler works with every protection. Calls on other
//! memory, and all calls without far memory, go to the kernel unchanged.

mod advice;
pub(crate) mod calls;
mod moves;
mod protection;

use crate::backing::Far;
use crate::plain::{self, ANONYMOUS, READ_WRITE, is_plain};
use crate::{causes, heap, routing, shortage};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use largesse_pager::NoMapping;
use largesse_report::Cause;

/// Size in bytes of the smallest mapping that becomes far memory: 1 MiB.
pub(crate) const SMALLEST: usize = 1 << 20;
/// Flags of `mmap` that prevent far memory: those that prevent large pages, and those for locked and for low addresses.
/// Allocators such as jemalloc and mimalloc map memory that they use at once with `MAP_NORESERVE`.
const NEVER: c_int = plain::NEVER & !libc::MAP_NORESERVE | libc::MAP_LOCKED | libc::MAP_32BIT;

/// Result of a system call as the kernel returns it: a number, or `-errno`.
pub(crate) type Answer = isize;

pub(crate) const fn refused(errno: c_int) -> Answer {
    -(errno as Answer)
}

/// Returns a range in whole pages; `None` if it is empty, not aligned or overflows, which the kernel reports as an
/// error.
fn range(at: *const c_void, len: usize) -> Option<Range<usize>> {
    let page = largesse_pages::base_page();
    let end = at.addr().checked_add(len)?.checked_next_multiple_of(page)?;
    (at.addr().is_multiple_of(page) && len > 0).then_some(at.addr()..end)
}

/// Returns whether a result is an error of the kernel.
fn is_error(answer: Answer) -> bool {
    (-4095..0).contains(&answer)
}

/// Returns far memory and the range in whole pages, if the range includes far pages.
fn far_range(at: *const c_void, len: usize) -> Option<(&'static Far, Range<usize>)> {
    let far = heap::far()?;
    let range = range(at, len)?;
    let is_far = far.pager().kernel().touches(&range) && quietly(|| far.is_far(&range));
    is_far.then_some((far, range))
}

/// Runs `work` with the program's signal handlers blocked, so that it may take locks of ours.
fn quietly<R>(work: impl FnOnce() -> R) -> R {
    let _inside = crate::guard::Inside::enter();
    work()
}

/// Returns whether a mapping becomes far memory if there is some. A larger one than the memory of the machine is only
/// reserved: the store has no room for it.
pub(crate) fn may_be_far(at: *mut c_void, len: usize, protection: c_int, flags: c_int) -> bool {
    let is_used = flags & libc::MAP_NORESERVE == 0 || len <= largesse_pages::physical_memory();
    is_used && is_plain(at, protection, flags, NEVER)
}

/// Serves `mmap`. Returns `None` if the call concerns no far memory and is left to the kernel.
///
/// # Safety
/// The requirements are those of `mmap(2)`.
pub(crate) unsafe fn map(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Option<Answer> {
    let far = heap::far()?;
    if flags & libc::MAP_FIXED != 0 {
        let (_, range) = far_range(at, len)?;
        // SAFETY: the caller's promise.
        return Some(unsafe { map_over(far, &range, protection, flags, fd, offset) });
    }
    // While blocks are near again, so are new mappings.
    if !heap::is_far() || len < SMALLEST || flags & libc::MAP_ANONYMOUS == 0 || !routing::is_enabled() {
        return None;
    }
    if !may_be_far(at, len, protection, flags) {
        causes::note(Cause::MappingNear);
        return None;
    }
    let Some(len) = len.checked_next_multiple_of(largesse_pages::base_page()) else {
        return Some(refused(libc::ENOMEM));
    };
    match quietly(|| far.map(len)) {
        Ok(at) => Some(at.cast_signed()),
        Err(NoMapping::NoAddresses) => {
            causes::note(Cause::RangeFull);
            None
        }
        Err(NoMapping::Refused(_)) => {
            causes::note(Cause::OutOfMemory);
            shortage::explain(len);
            Some(refused(libc::ENOMEM))
        }
    }
}

/// Replaces far memory by a new mapping, which becomes far memory, too, if it is plain anonymous memory.
///
/// # Safety
/// As `mmap(2)` with `MAP_FIXED`.
unsafe fn map_over(
    far: &Far,
    at: &Range<usize>,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Answer {
    let start = core::ptr::with_exposed_provenance_mut(at.start);
    let fixed = libc::MAP_FIXED | libc::MAP_NORESERVE;
    if flags & (ANONYMOUS | NEVER & !fixed) == ANONYMOUS {
        match quietly(|| far.map_over(at)) {
            Ok(false) => {}
            Ok(true) => {
                // SAFETY: the program asks for this protection of its own far memory.
                let done = unsafe { largesse_pages::raw_mprotect(start, at.len(), protection) };
                return if done == 0 { at.start.cast_signed() } else { done };
            }
            Err(_) => {
                causes::note(Cause::OutOfMemory);
                shortage::explain(at.len());
                return refused(libc::ENOMEM);
            }
        }
    }
    // First mapped at another address, so that a mapping that the kernel refuses changes nothing.
    let flags = flags & !libc::MAP_FIXED;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let got =
        unsafe { largesse_pages::raw_mmap(core::ptr::null_mut(), at.len(), protection, flags, fd, offset) };
    if is_error(got) {
        return got;
    }
    causes::note(Cause::MappingNear);
    let new = core::ptr::with_exposed_provenance_mut(got.cast_unsigned());
    let over = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the program asks for the new mapping at this address.
    let put = || unsafe { largesse_pages::raw_mremap(new, at.len(), at.len(), over, start) };
    quietly(|| far.leave_out(at, put)).unwrap_or(refused(libc::ENOMEM))
}

/// Maps new plain memory over the range of `len` bytes at `at`. It becomes far memory if the range includes far pages.
///
/// # Safety
/// As `mmap(2)` with `MAP_FIXED`.
unsafe fn map_at(at: *mut c_void, len: usize) -> Answer {
    let flags = ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: the caller's promise.
    if let Some(answer) = unsafe { map(at, len, READ_WRITE, flags, -1, 0) } {
        return answer;
    }
    causes::note(Cause::MappingNear);
    // SAFETY: the caller's promise.
    unsafe { largesse_pages::raw_mmap(at, len, READ_WRITE, flags, -1, 0) }
}
