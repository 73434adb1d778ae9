//! Mappings that other code asked for: the interposed `mmap` of the fronts ends here.

use crate::{MapError, MapOp, PageKind, sys};
use core::ffi::{c_int, c_void};

/// The system call itself, for callers who must answer like the C library: the address, or
/// `-errno` as the kernel returns it.
///
/// # Safety
/// As `mmap(2)`: a fixed mapping replaces what was there.
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

/// `munmap(2)`: zero, or `-errno`.
///
/// # Safety
/// Nobody uses the range.
pub unsafe fn raw_munmap(address: *mut c_void, len: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_munmap(address, len) }
}

/// `madvise(2)`: zero, or `-errno`.
///
/// # Safety
/// As the call: some advice has contents dropped.
pub unsafe fn raw_madvise(address: *mut c_void, len: usize, advice: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_madvise(address, len, advice) }
}

/// `mprotect(2)`: zero, or `-errno`.
///
/// # Safety
/// As the call.
pub unsafe fn raw_mprotect(address: *mut c_void, len: usize, protection: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sys::raw_mprotect(address, len, protection) }
}

/// `mremap(2)`: the new address, or `-errno`.
///
/// # Safety
/// As the call.
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

/// `mlock2(2)` of a range, or `mlockall(2)`: zero, or `-errno`.
#[must_use]
pub fn raw_mlock(range: Option<(*const c_void, usize)>, flags: c_int) -> isize {
    sys::raw_mlock(range, flags)
}

/// An anonymous private mapping of `len` bytes that starts at a multiple of `align`; `None` when
/// the kernel refuses.
#[must_use]
pub fn map_aligned(len: usize, align: usize, protection: c_int, flags: c_int) -> Option<*mut c_void> {
    sys::map_aligned(len, align, protection, flags)
}

/// Advise a mapping that its owner just made through us.
pub fn advise_mapping(address: *mut c_void, len: usize, kind: PageKind) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::advise(start, len, kind).map_err(|errno| MapError { op: MapOp::Advise, len, errno })
}

/// Put anonymous memory with the same contents in the place of a private mapping of a file.
///
/// # Safety
/// The range is mapped, readable and writable, whole pages, and no other thread uses it meanwhile.
pub unsafe fn make_anonymous(address: *mut c_void, len: usize) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    // SAFETY: the caller's promise.
    unsafe { sys::make_anonymous(start, len) }.map_err(|errno| MapError { op: MapOp::Relocate, len, errno })
}

/// Calls `f` with the offset of each page of a mapping that is in memory.
pub fn each_resident(address: *mut c_void, len: usize, f: &mut dyn FnMut(usize)) {
    if let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) {
        sys::each_resident(start, len, f);
    }
}

/// Whether anything is mapped at the page that starts at `address`.
#[must_use]
pub fn is_mapped(address: *mut c_void) -> bool {
    core::ptr::NonNull::new(address.cast::<u8>()).is_some_and(sys::is_mapped)
}

/// Give the pages of a private mapping back; it reads as zero, or faults where faults are served.
///
/// # Safety
/// The range is the caller's, and nobody uses what it holds.
pub unsafe fn forget(address: *mut c_void, len: usize) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::purge(start, len).map_err(|errno| MapError { op: MapOp::Purge, len, errno })
}

/// [`forget`] for several ranges, of address and length: other processors are told once, not once a range, where the kernel
/// can (Linux 6.16).
///
/// # Safety
/// As for [`forget`].
pub unsafe fn forget_all(ranges: &[(usize, usize)]) -> Result<(), MapError> {
    if ranges.len() > 1 && sys::purge_all(ranges) {
        return Ok(());
    }
    let mut ranges = ranges.iter().map(|&(at, len)| (core::ptr::with_exposed_provenance_mut(at), len));
    // SAFETY: the caller's promise; what is forgotten twice is forgotten.
    ranges.try_for_each(|(at, len)| unsafe { forget(at, len) })
}

/// Whether a forked child gets the mappings of this range, or nothing at its addresses.
pub fn inherited(address: *mut c_void, len: usize, yes: bool) -> Result<(), MapError> {
    let Some(start) = core::ptr::NonNull::new(address.cast::<u8>()) else { return Ok(()) };
    sys::inherited(start, len, yes).map_err(|errno| MapError { op: MapOp::Advise, len, errno })
}

/// Maps zeroed memory for the library's own tables and buffers, or returns `None` where the kernel refuses it: address
/// space now, pages at first touch. It does not count as the program's ([`crate::own_bytes`]).
#[must_use]
pub fn mapping_at(len: usize) -> Option<core::ptr::NonNull<u8>> {
    sys::map_metadata(len).inspect(|start| crate::own::add(start.as_ptr().addr(), len))
}

/// Unmaps memory of the library's own.
///
/// # Safety
/// [`mapping_at`] returned `start` for this length, and nobody uses the memory.
pub unsafe fn unmap_own(start: core::ptr::NonNull<u8>, len: usize) {
    crate::own::remove(start.as_ptr().addr());
    // SAFETY: the caller's promise: the mapping is one of our own, and nobody uses it.
    unsafe { raw_munmap(start.as_ptr().cast(), len) };
}

/// Make the pages around `[address, address + len)` writable (relocation slots behind RELRO);
/// with `writable` false they are made read-only again.
///
/// # Safety
/// The range belongs to a loaded object's data.
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
    fn what_is_forgotten_together_reads_as_zero_and_its_neighbours_stay() {
        let (page, pages) = (base_page(), 300);
        let start = mapping_at(pages * page).unwrap().as_ptr();
        // SAFETY: pages of ours, inside the mapping; the next calls only read and forget them.
        let bytes = unsafe { core::slice::from_raw_parts_mut(start, pages * page) };
        bytes.fill(7);
        let at = bytes.as_ptr().addr();
        let even: Vec<_> = (0..pages).step_by(2).map(|number| (at + number * page, page)).collect();
        start.expose_provenance();
        // SAFETY: nobody uses the pages while they go.
        unsafe { forget_all(&even) }.unwrap();
        for number in 0..pages {
            // SAFETY: inside the mapping.
            let byte = unsafe { start.add(number * page).read_volatile() };
            assert_eq!(byte, if number % 2 == 0 { 0 } else { 7 }, "page {number}");
        }
        // With another number for this process the kernel refuses, and nothing is seen of it but time.
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a readable /proc");
        let mut numbers = release.split(['.', '-']).filter_map(|it| it.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) >= (Some(6), Some(16)) {
            assert!(sys::purge_all(&even), "Linux {release}: not at once");
        }
    }
}
