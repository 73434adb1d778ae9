//! Replaces the kernel under Miri by ordinary memory that is always accessible and has no residency.
#![expect(clippy::disallowed_methods, reason = "this file takes the place of the others")]
extern crate std;

use crate::wait::Among;
use crate::{PageKind, Placement};
use core::ffi::{CStr, c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::alloc::{Layout, alloc_zeroed, dealloc};

const PAGE: usize = 4096;

fn layout(len: usize) -> Layout {
    Layout::from_size_align(len, crate::SPAN).expect("a length of whole spans")
}

pub(crate) fn reserve(len: usize, _align: usize) -> Result<NonNull<u8>, i32> {
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { alloc_zeroed(layout(len)) }).ok_or(libc::ENOMEM)
}
pub(crate) fn release(at: NonNull<u8>, len: usize) {
    if len > 0 {
        // SAFETY: made by `reserve` with the same layout.
        unsafe { dealloc(at.as_ptr(), layout(len)) };
    }
}
pub(crate) fn map_metadata(len: usize) -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty. The memory is leaked, like the mapping it replaces.
    NonNull::new(unsafe { alloc_zeroed(Layout::from_size_align(len, PAGE).ok()?) })
}
pub(crate) fn commit(_at: NonNull<u8>, _len: usize, kind: PageKind) -> Result<(), i32> {
    if matches!(kind, PageKind::Hugetlb | PageKind::Hugetlb1G) { Err(libc::ENOMEM) } else { Ok(()) }
}
pub(crate) fn decommit(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    purge(at, len)
}
pub(crate) fn advise(_at: NonNull<u8>, _len: usize, _kind: PageKind) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn collapse(_at: NonNull<u8>, _len: usize) -> Result<(), i32> {
    Err(libc::EINVAL)
}
pub(crate) fn purge(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: callers own the range.
    unsafe { at.write_bytes(0, len) };
    Ok(())
}
pub(crate) fn offer(at: NonNull<u8>, len: usize) -> Result<(), i32> {
    purge(at, len)
}
pub(crate) fn purge_all(_ranges: &[(usize, usize)]) -> bool {
    false
}
pub(crate) fn inherited(_at: NonNull<u8>, _len: usize, _yes: bool) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn populate(_at: NonNull<u8>, _len: usize) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn forget_use(_at: NonNull<u8>, _len: usize) -> Result<(), i32> {
    Err(libc::EINVAL)
}
pub(crate) fn set_apart(_at: NonNull<u8>, _len: usize, _apart: bool) -> Result<(), i32> {
    Err(libc::EINVAL)
}
pub(crate) fn lock(_at: NonNull<u8>, _len: usize) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn place(_at: NonNull<u8>, _len: usize, _placement: Placement) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn relocate(from: NonNull<u8>, to: NonNull<u8>, len: usize) -> Result<(), i32> {
    // SAFETY: callers promise two ranges of their own that do not overlap.
    unsafe { to.copy_from_nonoverlapping(from, len) };
    purge(from, len)
}
pub(crate) unsafe fn demote(
    _: NonNull<u8>,
    _: usize,
    _: &mut dyn FnMut(NonNull<u8>, usize, usize) -> bool,
) -> Result<(), i32> {
    Ok(())
}
pub(crate) fn any_resident(_at: NonNull<u8>, _len: usize) -> bool {
    true
}
pub(crate) fn is_mapped(_at: NonNull<u8>) -> bool {
    true
}
pub(crate) fn map_aligned(
    _len: usize,
    _align: usize,
    _protection: c_int,
    _flags: c_int,
) -> Option<*mut c_void> {
    None
}
pub(crate) unsafe fn raw_mmap(_: *mut c_void, _: usize, _: c_int, _: c_int, _: c_int, _: i64) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) unsafe fn raw_munmap(_: *mut c_void, _: usize) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) unsafe fn raw_madvise(_: *mut c_void, _: usize, _: c_int) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) unsafe fn raw_mprotect(_: *mut c_void, _: usize, _: c_int) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) unsafe fn raw_pkey_mprotect(_: *mut c_void, _: usize, _: c_int, _: c_int) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) unsafe fn raw_mremap(_: *mut c_void, _: usize, _: usize, _: c_int, _: *mut c_void) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) fn raw_mlock(_: Option<(*const c_void, usize)>, _: c_int) -> isize {
    -(libc::ENOSYS as isize)
}
pub(crate) fn guard(_: NonNull<u8>, _: usize) -> Result<(), i32> {
    Ok(())
}
pub(crate) unsafe fn protect(_: usize, _: usize, _: bool) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn publish(_name: &CStr, _bytes: &[u8]) -> Result<NonNull<u8>, i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn share_file(_path: &CStr, _len: usize) -> Result<NonNull<u8>, i32> {
    Err(libc::ENOSYS)
}
#[derive(Debug)]
pub(crate) struct Descriptor;
pub(crate) fn open_pagemap(_pid: Option<u32>) -> Result<Descriptor, i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn read_file<'a>(_path: &CStr, _into: &'a mut [u8]) -> Option<&'a [u8]> {
    None
}
pub(crate) fn scan(_file: &Descriptor, _start: u64, _end: u64) -> Result<(u64, u64, Option<u64>), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn each_populated(_: &Descriptor, _: u64, _: u64, _: &mut dyn FnMut(u64, u64)) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn migrate(_: NonNull<u8>, _: usize, _: u32) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn place_thread(_: crate::placement::ThreadPolicy<'_>) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn read_byte(_: *mut u8) -> bool {
    false
}
pub(crate) fn nodes_of(_: i32, _: &[u64], _: &mut [i32]) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn each_resident(_at: NonNull<u8>, _len: usize, _f: &mut dyn FnMut(usize)) {}
pub(crate) unsafe fn make_anonymous(_at: NonNull<u8>, _len: usize) -> Result<(), i32> {
    Err(libc::ENOSYS)
}
pub(crate) fn futex_wait(_: &AtomicU32, _: u32, _: Option<core::time::Duration>, _: Among) {
    std::thread::yield_now();
}
pub(crate) fn futex_wake(_: &AtomicU32, _: c_int, _: Among) {}
pub(crate) fn now_seconds() -> u32 {
    0
}
pub(crate) fn thread_handle() -> usize {
    std::thread_local! { static MINE: usize = const { 0 } }
    MINE.with(|mine| (&raw const *mine).addr())
}
pub(crate) fn thread_id() -> u32 {
    1
}
pub(crate) fn base_page() -> usize {
    PAGE
}
pub(crate) fn physical_memory() -> usize {
    1 << 30
}
pub(crate) fn thp_disabled() -> bool {
    false
}
