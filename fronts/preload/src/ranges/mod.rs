//! Serves the calls that map, unmap, move, lock, protect and advise ranges of far memory, and of memory that becomes
//! far.
//!
//! Far memory keeps a state of every page, of which the kernel does not know, so calls that change the contents of
//! pages are intercepted. `mprotect` is, too: it makes reserved memory usable, which has room in the store only then.
//! Calls on other memory, and all calls without far memory or a limit, go to the kernel unchanged. Under a limit,
//! mappings are near in the range that becomes far (`near_mappings.rs`): each call asks there first.

mod advice;
mod by_number;
pub(crate) mod calls;
mod moves;
mod protection;

use crate::answer::{Answer, is_error, refused};
use crate::backing::Far;
use crate::near_mappings::{self, Purpose};
use crate::plain::{self, ANONYMOUS, EXECUTABLE, READ_WRITE};
use crate::{causes, heap, limit_state, near_statics, routing, shortage, spill};
use core::ffi::{c_int, c_void};
use core::ops::Range;
use largesse_pager::NoMapping;
use largesse_report::Cause;

/// Size in bytes of the smallest mapping that becomes far memory: 1 MiB.
pub(crate) const SMALLEST: usize = 1 << 20;
/// Size in bytes of the smallest mapping that becomes far memory if code may run in it: 16 MiB. Caches of code are smaller,
/// and used all the time.
const SMALLEST_EXECUTABLE: usize = 16 << 20;
/// Flags of `mmap` that prevent far memory: those that prevent large pages, and those for locked and for low addresses.
/// Allocators such as jemalloc and mimalloc map memory that they use at once with `MAP_NORESERVE`.
const NEVER: c_int = plain::NEVER & !libc::MAP_NORESERVE | libc::MAP_LOCKED | libc::MAP_32BIT;
/// Addresses below this one, 4 GiB, are not far: a program that asks for usable memory there keeps 32 bits of pointers.
const LOWEST: usize = 1 << 32;

/// Returns a range in whole pages; `None` if it is empty, not aligned or overflows, which the kernel reports as an
/// error.
fn range(at: *const c_void, len: usize) -> Option<Range<usize>> {
    let page = largesse_pages::base_page();
    let end = at.addr().checked_add(len)?.checked_next_multiple_of(page)?;
    (at.addr().is_multiple_of(page) && len > 0).then_some(at.addr()..end)
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

/// Returns what a new mapping is for if it becomes far memory once there is some; `None` if it does not. The address is
/// a wish, which need not be granted. A larger mapping than the memory of the machine, made with `MAP_NORESERVE`, is
/// only reserved, but usable: the store has no room for it.
///
/// Lisp systems have threads with stacks and signal stacks in executable memory, which they map with `MAP_NORESERVE`
/// wherever the kernel likes. It stays near: the kernel cannot write the frame of a signal to a far page in user mode.
/// Their heaps are mapped at a wished address.
pub(crate) fn purpose(at: *mut c_void, len: usize, protection: c_int, flags: c_int) -> Option<Purpose> {
    if len < SMALLEST || flags & (ANONYMOUS | NEVER) != ANONYMOUS {
        return None;
    }
    let is_placed = || at.is_null() || at.addr() >= LOWEST;
    let is_used = || flags & libc::MAP_NORESERVE == 0 || len <= largesse_pages::physical_memory();
    let stays_near = || len < SMALLEST_EXECUTABLE || at.is_null() && flags & libc::MAP_NORESERVE != 0;
    match protection {
        READ_WRITE if is_placed() && is_used() => Some(Purpose::Use { large: false, protection }),
        EXECUTABLE if is_placed() && is_used() && !stays_near() => {
            Some(Purpose::Use { large: false, protection })
        }
        libc::PROT_NONE => Some(Purpose::Reserve),
        _ => None,
    }
}

/// Returns whether a program reserves memory at this address or nowhere, as Java does with a heap: it tries one address
/// after the other, and reserves the heap anywhere if all are occupied. Only there can it be far.
fn is_reserved_there(len: usize, protection: c_int, flags: c_int) -> bool {
    let flags_of_it = ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    len >= SMALLEST && protection == libc::PROT_NONE && flags == flags_of_it
}

/// Implements `mmap`. Returns `None` if the call concerns no far memory and is left to the kernel.
///
/// # Safety
/// The requirements are those of `mmap(2)`.
pub(crate) unsafe fn map(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    (fd, offset): (c_int, i64),
    large: bool,
) -> Option<Answer> {
    if flags & libc::MAP_FIXED != 0 {
        // SAFETY: the caller's promise.
        return unsafe { map_over(at, len, protection, flags, (fd, offset)) };
    }
    if len < SMALLEST || flags & libc::MAP_ANONYMOUS == 0 || !routing::is_enabled() {
        return None;
    }
    let far = heap::far();
    let Some(purpose) = purpose(at, len, protection, flags) else {
        let is_moved = (far.is_some() || limit_state::is_watched())
            && is_reserved_there(len, protection, flags)
            && range(at, len).is_some();
        if is_moved {
            return Some(refused(libc::EEXIST));
        }
        if far.is_some() {
            causes::note(Cause::MappingNear);
        }
        return None;
    };
    let Some(len) = len.checked_next_multiple_of(largesse_pages::base_page()) else {
        return Some(refused(libc::ENOMEM));
    };
    let near = match purpose {
        Purpose::Use { protection, .. } => Purpose::Use { large, protection },
        Purpose::Reserve => Purpose::Reserve,
    };
    if let Some(at) = near_mappings::map(len, at.addr(), near) {
        return Some(at.cast_signed());
    }
    // Again, since it may have been made in the meantime.
    let far = heap::far()?;
    let mapped = quietly(|| match purpose {
        Purpose::Use { .. } => far.map(len, at.addr()),
        Purpose::Reserve => far.reserve(len, at.addr()),
    });
    match mapped {
        Ok(at) => {
            let start = core::ptr::with_exposed_provenance_mut(at);
            if let Purpose::Use { protection: EXECUTABLE, .. } = purpose {
                expect_executable(far, EXECUTABLE);
                // SAFETY: a new mapping, which the program does not use yet.
                let done = unsafe { largesse_pages::raw_mprotect(start, len, EXECUTABLE) };
                if done != 0 {
                    let _ = quietly(|| far.unmap(&(at..at + len)));
                    return Some(done);
                }
            }
            Some(at.cast_signed())
        }
        Err(NoMapping::NoAddresses) => {
            // A reservation may be larger than any memory.
            let is_used = matches!(purpose, Purpose::Use { .. });
            causes::note(if is_used { Cause::RangeFull } else { Cause::MappingNear });
            None
        }
        Err(NoMapping::Refused(_)) => Some(no_room(len)),
    }
}

/// Has far memory prepare for memory from which code may run, if `protection` is that of such memory.
fn expect_executable(far: &Far, protection: c_int) {
    if protection & libc::PROT_EXEC != 0 {
        // A refusal makes evictions slower.
        let _ = quietly(|| far.pager().kernel().expect_executable());
    }
}

/// Returns the answer to a request for `len` bytes for which the store has no room.
fn no_room(len: usize) -> Answer {
    causes::note(Cause::OutOfMemory);
    shortage::explain(len);
    refused(libc::ENOMEM)
}

/// Maps something over the `len` bytes at `at`. Returns `None` if they include no far memory, and none that becomes
/// far.
///
/// # Safety
/// As `mmap(2)` with `MAP_FIXED`.
unsafe fn map_over(
    at: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    (fd, offset): (c_int, i64),
) -> Option<Answer> {
    let all = range(at, len)?;
    near_statics::leave_near(&all);
    let over = |near: &mut near_mappings::NearMappings| {
        // SAFETY: the caller's promise.
        unsafe { near.map_over(&all, protection, flags, (fd, offset), can_be_far(flags)) }
    };
    if let Some(answer) = near_mappings::with(&all, over) {
        return Some(answer);
    }
    let (far, all) = far_range(at, len)?;
    // SAFETY: the caller's promise.
    Some(unsafe { map_over_far(far, &all, protection, flags, fd, offset) })
}

/// Returns whether a mapping with `MAP_FIXED` over memory of ours can be far.
fn can_be_far(flags: c_int) -> bool {
    let fixed = libc::MAP_FIXED | libc::MAP_NORESERVE;
    flags & (ANONYMOUS | NEVER & !fixed) == ANONYMOUS
}

/// Replaces far memory by a new mapping, which becomes far memory, too, if it is plain anonymous memory.
///
/// # Safety
/// As `mmap(2)` with `MAP_FIXED`.
unsafe fn map_over_far(
    far: &Far,
    at: &Range<usize>,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> Answer {
    let start = core::ptr::with_exposed_provenance_mut(at.start);
    if can_be_far(flags) {
        if protection == libc::PROT_NONE && quietly(|| far.is_in_mappings(at)) {
            let done = quietly(|| far.reserve_over(at));
            return if done.is_ok() { at.start.cast_signed() } else { no_room(at.len()) };
        }
        match quietly(|| far.map_over(at)) {
            Ok(false) => {}
            Ok(true) => {
                expect_executable(far, protection);
                // SAFETY: the program asks for this protection of its own far memory.
                let done = unsafe { largesse_pages::raw_mprotect(start, at.len(), protection) };
                return if done == 0 { at.start.cast_signed() } else { done };
            }
            Err(_) => return no_room(at.len()),
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
    if let Some(answer) = unsafe { map(at, len, READ_WRITE, flags, (-1, 0), false) } {
        return answer;
    }
    if heap::far().is_some() {
        causes::note(Cause::MappingNear);
    }
    // SAFETY: the caller's promise.
    unsafe { largesse_pages::raw_mmap(at, len, READ_WRITE, flags, -1, 0) }
}

/// Implements `mprotect`.
///
/// # Safety
/// The requirements are those of `mprotect(2)`.
unsafe fn protect(at: *mut c_void, len: usize, protection: c_int) -> Answer {
    // SAFETY: the caller's promise.
    let by_kernel = || unsafe { largesse_pages::raw_mprotect(at, len, protection) };
    let Some(all) = range(at, len).filter(|_| protection != libc::PROT_NONE) else { return by_kernel() };
    let more = reserved_bytes(&all);
    if more > 0 {
        spill::before_mapping(more);
    }
    if let Some(answer) = near_mappings::with(&all, |near| near.protect(&all, protection)) {
        return answer;
    }
    match heap::far().filter(|far| far.pager().kernel().touches(&all)) {
        Some(far) => {
            expect_executable(far, protection);
            quietly(|| far.use_reserved(&all, by_kernel)).unwrap_or_else(|_| no_room(more))
        }
        None => by_kernel(),
    }
}

/// Returns the number of bytes of the addresses `at` that the program has reserved and cannot use yet.
fn reserved_bytes(at: &Range<usize>) -> usize {
    if let Some(bytes) = near_mappings::with(at, |near| near.reserved_bytes(at)) {
        return bytes;
    }
    let far = heap::far().filter(|far| far.pager().kernel().touches(at));
    far.map_or(0, |far| quietly(|| far.reserved_bytes(at)))
}

/// Returns how many bytes of `at..at + len`, which are reserved far memory until now, the program can use once it has
/// made a mapping there with this protection and these flags.
pub(crate) fn usable_after(at: *const c_void, len: usize, protection: c_int, flags: c_int) -> usize {
    let is_fixed = flags & libc::MAP_FIXED != 0 && can_be_far(flags) && protection != libc::PROT_NONE;
    range(at, len).filter(|_| is_fixed).map_or(0, |all| reserved_bytes(&all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null_mut, without_provenance_mut};

    #[test]
    fn plain_and_reserved_mappings_become_far() {
        let use_with = |protection| Some(Purpose::Use { large: false, protection });
        let (used, runs, reserved) = (use_with(READ_WRITE), use_with(EXECUTABLE), Some(Purpose::Reserve));
        let (lazy, none) = (ANONYMOUS | libc::MAP_NORESERVE, libc::PROT_NONE);
        let (low, high) = (without_provenance_mut(1 << 31), without_provenance_mut(1 << 41));
        for (at, len, protection, flags, want) in [
            (null_mut(), SMALLEST, READ_WRITE, ANONYMOUS, used),
            (null_mut(), SMALLEST - 1, READ_WRITE, ANONYMOUS, None),
            (null_mut(), SMALLEST, READ_WRITE, lazy, used),
            (null_mut(), 1 << 46, READ_WRITE, lazy, None),
            (null_mut(), 1 << 46, none, lazy, reserved),
            (null_mut(), SMALLEST, none, ANONYMOUS, reserved),
            (high, SMALLEST, none, lazy, reserved),
            (high, SMALLEST, READ_WRITE, lazy, used),
            (low, SMALLEST, READ_WRITE, lazy, None),
            (low, SMALLEST, none, lazy, reserved),
            (null_mut(), SMALLEST, none, ANONYMOUS | libc::MAP_STACK, None),
            (null_mut(), SMALLEST, libc::PROT_READ, ANONYMOUS, None),
            (null_mut(), SMALLEST_EXECUTABLE, EXECUTABLE, ANONYMOUS, runs),
            (null_mut(), SMALLEST_EXECUTABLE - 1, EXECUTABLE, ANONYMOUS, None),
            (null_mut(), SMALLEST_EXECUTABLE, EXECUTABLE, lazy, None),
            (high, SMALLEST_EXECUTABLE, EXECUTABLE, lazy, runs),
            (low, SMALLEST_EXECUTABLE, EXECUTABLE, lazy, None),
            (null_mut(), SMALLEST_EXECUTABLE, libc::PROT_READ | libc::PROT_EXEC, ANONYMOUS, None),
            (null_mut(), SMALLEST, none, libc::MAP_SHARED | libc::MAP_ANONYMOUS, None),
            (high, SMALLEST, none, lazy | libc::MAP_FIXED_NOREPLACE, None),
        ] {
            assert_eq!(purpose(at, len, protection, flags), want, "{at:?} {len} {protection} {flags:#x}");
        }
    }
}
