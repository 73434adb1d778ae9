//! Makes system calls on mappings that belong to other code, such as those for which a program called the interposed
//! `mmap`.

use crate::{MapError, MapOp, PageKind, sys};
use core::ffi::{c_int, c_void};

/// Makes the `mmap(2)` system call, for callers that must behave like the C library. Returns the address or `-errno`.
///
/// # Safety
/// The requirements are those of `mmap(2)`: a fixed mapping replaces existing ones.
pub unsafe fn raw_mmap(
    address: *mut c_void,
    len: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_mmap(address, len, protection, flags, fd, offset) }
}

/// Makes the `munmap(2)` system call. Returns zero or `-errno`.
///
/// # Safety
/// Nothing uses the range any more.
pub unsafe fn raw_munmap(address: *mut c_void, len: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_munmap(address, len) }
}

/// Makes the `madvise(2)` system call. Returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `madvise(2)`: some advice discards contents.
pub unsafe fn raw_madvise(address: *mut c_void, len: usize, advice: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_madvise(address, len, advice) }
}

/// Makes the `mprotect(2)` system call. Returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `mprotect(2)`.
pub unsafe fn raw_mprotect(address: *mut c_void, len: usize, protection: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_mprotect(address, len, protection) }
}

/// Makes the `pkey_mprotect(2)` system call. Returns zero or `-errno`.
///
/// # Safety
/// The requirements are those of `pkey_mprotect(2)`.
pub unsafe fn raw_pkey_mprotect(address: *mut c_void, len: usize, protection: c_int, key: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_pkey_mprotect(address, len, protection, key) }
}

/// Makes the `mremap(2)` system call. Returns the new address or `-errno`.
///
/// # Safety
/// The requirements are those of `mremap(2)`.
pub unsafe fn raw_mremap(
    old: *mut c_void,
    old_len: usize,
    new_len: usize,
    flags: c_int,
    new: *mut c_void,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_mremap(old, old_len, new_len, flags, new) }
}

/// Makes the `mlock2(2)` system call for a range, or `mlockall(2)` if there is no range. Returns zero or `-errno`.
#[must_use]
pub fn raw_mlock(range: Option<(*const c_void, usize)>, flags: c_int) -> isize {
    sys::raw_mlock(range, flags)
}

/// Maps `len` bytes of anonymous private memory at a multiple of `align`, or returns `None` if the kernel refuses.
#[must_use]
pub fn map_aligned(len: usize, align: usize, protection: c_int, flags: c_int) -> Option<*mut c_void> {
    sys::map_aligned(len, align, protection, flags)
}

/// Advises the kernel to back a mapping with pages of this kind. The caller has just created the mapping through this
/// crate.
pub fn advise_mapping(address: *mut c_void, len: usize, kind: PageKind) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::advise(start, len, kind).map_err(|errno| MapError { op: MapOp::Advise, len, errno })
}

/// Replaces a private mapping of a file by anonymous memory with the same contents.
///
/// # Safety
/// The range is mapped, readable and writable, and consists of whole pages. No other thread uses it during the call.
pub unsafe fn make_anonymous(address: *mut c_void, len: usize) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    // SAFETY: the caller's promise.
    unsafe { sys::make_anonymous(start, len) }.map_err(|errno| MapError { op: MapOp::Relocate, len, errno })
}

/// Calls `f` with the offset in bytes of each resident page of a mapping.
pub fn each_resident(address: *mut c_void, len: usize, f: &mut dyn FnMut(usize)) {
    if let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) {
        sys::each_resident(start, len, f);
    }
}

/// Returns whether anything is mapped at the page that starts at `address`.
#[must_use]
pub fn is_mapped(address: *mut c_void) -> bool {
    core::ptr::NonNull::new(address.cast::<u8>()).is_some_and(sys::is_mapped)
}

/// Returns the pages of a private mapping to the kernel. If the range is registered with a userfaultfd, accesses to it
/// then fault; otherwise it reads as zero.
///
/// # Safety
/// The range is the caller's, and nothing uses its contents.
pub unsafe fn forget(address: *mut c_void, len: usize) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::purge(start, len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
}

/// Does what [`forget`] does for several ranges, each given by address and length. Where the kernel can (Linux 6.16),
/// the address caches (TLBs) of other processors are cleared once for all ranges, not once for each.
///
/// # Safety
/// The requirements are those of [`forget`].
pub unsafe fn forget_all(ranges: &[(usize, usize)]) -> Result<(), MapError> {
    if ranges.len() > 1 && sys::purge_all(ranges) {
        return Ok(());
    }
    let mut ranges = ranges.iter().map(|&(at, len)| (core::ptr::with_exposed_provenance_mut(at), len));
    // SAFETY: the caller's promise; forgetting a range twice has the effect of once.
    ranges.try_for_each(|(at, len)| unsafe { forget(at, len) })
}

/// Sets whether a forked child inherits the mappings of this range. If not, the range is unmapped in the child.
pub fn inherited(address: *mut c_void, len: usize, yes: bool) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::inherited(start, len, yes).map_err(|errno| MapError { op: MapOp::Advise, len, errno })
}

/// Maps zeroed memory for the library's own tables and buffers, populated at first touch, or returns `None` if the
/// kernel refuses. It is not counted as the program's memory ([`crate::own_bytes`]).
#[must_use]
pub fn mapping_at(len: usize) -> Option<core::ptr::NonNull<u8>> {
    sys::map_metadata(len).inspect(|start| crate::own::add(start.as_ptr().addr(), len))
}

/// Unmaps memory that [`mapping_at`] returned.
///
/// # Safety
/// [`mapping_at`] returned `start` for this length, and nothing uses the memory.
pub unsafe fn unmap_own(start: core::ptr::NonNull<u8>, len: usize) {
    crate::own::remove(start.as_ptr().addr());
    // SAFETY: the caller's promise: the mapping is one of our own, and unused.
    unsafe { raw_munmap(start.as_ptr().cast(), len) };
}

/// Makes the pages around `[address, address + len)` writable, which is needed for relocation slots that the linker
/// has protected (RELRO). If `writable` is false, makes them read-only again.
///
/// # Safety
/// The range belongs to the data of a loaded object.
pub unsafe fn writable(address: usize, len: usize, writable: bool) -> Result<(), MapError> {
    // SAFETY: the caller's promise.
    unsafe { sys::protect(address, len, writable) }.map_err(|errno| MapError {
        op: MapOp::Commit,
        len,
        errno,
    })
}

#[cfg(all(test, not(miri)))]
mod tests {
    extern crate std;
    use super::*;
    use crate::base_page;
    use std::vec::Vec;

    #[test]
    fn forget_all_zeroes_only_its_ranges() {
        let (page, pages) = (base_page(), 300);
        let start = mapping_at(pages * page).unwrap().as_ptr();
        // SAFETY: pages of our own, inside the mapping; the next calls only read and forget them.
        let bytes = unsafe { core::slice::from_raw_parts_mut(start, pages * page) };
        bytes.fill(7);
        let at = bytes.as_ptr().addr();
        let even: Vec<_> = (0..pages).step_by(2).map(|number| (at + number * page, page)).collect();
        start.expose_provenance();
        // SAFETY: nothing else uses the pages.
        unsafe { forget_all(&even) }.unwrap();
        for number in 0..pages {
            // SAFETY: inside the mapping.
            let byte = unsafe { start.add(number * page).read_volatile() };
            assert_eq!(byte, if number % 2 == 0 { 0 } else { 7 }, "page {number}");
        }
        // A kernel that does not know the number for this process refuses, which only costs time: test it by itself.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a readable /proc");
        let mut numbers = release.split(['.', '-']).filter_map(|it| it.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) >= (Some(6), Some(16)) {
            assert!(sys::purge_all(&even), "Linux {release} did not purge the ranges in one call");
        }
    }
}
