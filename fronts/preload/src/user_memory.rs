//! Copies from and to memory of the program, at addresses that may be invalid.
//!
//! The kernel copies (`process_vm_readv` on this process): an inaccessible page ends the copy, and raises no signal.

use crate::pinned::{IoVec, PinnedPages};
use core::ffi::c_long;
use largesse_pages::raw_call;

/// The most bytes that the kernel transfers in one call (`MAX_RW_COUNT`).
pub(crate) const MOST_BYTES: usize = 0x7fff_f000;
/// Most elements in an array of buffers or of messages (`UIO_MAXIOV`).
pub(crate) const MOST_PARTS: usize = 1024;

/// Reads an array of buffers; returns `None` if it is unreadable, or longer than the kernel accepts.
pub(crate) fn read_parts(at: usize, count: usize, pinned: &mut PinnedPages<'_>) -> Option<Vec<IoVec>> {
    let array = (count <= MOST_PARTS).then(|| read_array::<2>(at, count, pinned))??;
    Some(array.into_iter().map(|[at, len]| IoVec { at, len }).collect())
}

/// Reads `len` structures of `N` words each; returns `None` if they are inaccessible. `pinned` keeps their far pages
/// resident.
pub(crate) fn read_array<const N: usize>(
    at: usize,
    len: usize,
    pinned: &mut PinnedPages<'_>,
) -> Option<Vec<[usize; N]>> {
    let mut array = vec![[0; N]; len];
    let (to, bytes) = (array.as_mut_ptr().addr(), size_of_val(&*array));
    pinned.all(at, bytes, false);
    // SAFETY: the array has `bytes` bytes, and any bytes are words.
    let got = unsafe { copy(libc::SYS_process_vm_readv, to, IoVec { at, len: bytes }) };
    (got == bytes).then_some(array)
}

/// Copies between `ours` and a part of the program's memory, whose far pages are resident, in the direction of the
/// system call `which`. Returns the bytes that were copied.
///
/// # Safety
/// The `program.len` bytes at `ours` must be valid for the direction of `which`.
pub(crate) unsafe fn copy(which: c_long, ours: usize, program: IoVec) -> usize {
    let ours = IoVec { at: ours, len: program.len };
    let (ours, program) = ((&raw const ours).addr(), (&raw const program).addr());
    // The calling thread's number: the kernel finds no memory under the process's once the main thread has ended.
    // SAFETY: no preconditions.
    let thread = unsafe { raw_call(libc::SYS_gettid, [0; 6]) }.cast_unsigned();
    // SAFETY: both structures live until the call ends; the caller vouches for `ours`, the kernel checks `program`.
    let copied = unsafe { raw_call(which, [thread, ours, 1, program, 1, 0]) };
    usize::try_from(copied).unwrap_or(0)
}
