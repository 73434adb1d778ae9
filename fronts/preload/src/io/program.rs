//! Copies from and to memory of the program, at addresses that may be invalid.
//!
//! The kernel copies (`process_vm_readv` on this process): an inaccessible page ends the copy, and raises no signal.

use super::pinned::{IoVec, PinnedPages};
use super::raw;
use core::ffi::c_long;

/// Most bytes in a path, with its NUL.
const PATH: usize = 4096;
/// Number of bytes of a path that are copied at a time.
const CHUNK: usize = 256;

/// Reads `N` words of the program; `None` where they are inaccessible. `pinned` keeps their far pages resident.
pub(super) fn read<const N: usize>(at: usize, pinned: &mut PinnedPages<'_>) -> Option<[usize; N]> {
    read_array(at, 1, pinned)?.pop()
}

/// Reads `len` structures of `N` words each, as [`read`] does one.
pub(super) fn read_array<const N: usize>(
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

/// Writes words to the program, whose far pages `pinned` keeps resident. Returns `false` if some are inaccessible.
pub(super) fn write(at: usize, words: &[usize], pinned: &mut PinnedPages<'_>) -> bool {
    let len = size_of_val(words);
    pinned.all(at, len, true);
    // SAFETY: the words are readable.
    unsafe { copy(libc::SYS_process_vm_writev, words.as_ptr().addr(), IoVec { at, len }) == len }
}

/// Makes a C string resident. Returns its length in bytes with the NUL, or that up to [`PATH`] or an inaccessible byte.
pub(super) fn text(at: usize, pinned: &mut PinnedPages<'_>) -> usize {
    let mut len = 0;
    while len < PATH {
        let from = at.wrapping_add(len);
        // A chunk lies within one page, so that all of it is accessible or none.
        let mut bytes = [1; CHUNK];
        let bytes = &mut bytes[..CHUNK - from % CHUNK];
        pinned.all(from, bytes.len(), false);
        let part = IoVec { at: from, len: bytes.len() };
        // SAFETY: the array has `part.len` bytes.
        if unsafe { copy(libc::SYS_process_vm_readv, bytes.as_mut_ptr().addr(), part) } != part.len {
            return len;
        }
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            return len + end + 1;
        }
        len += part.len;
    }
    len
}

/// Copies between `ours` and a part of the program's memory, whose far pages are resident, in the direction of the
/// system call `which`. Returns the bytes that were copied.
///
/// # Safety
/// The `program.len` bytes at `ours` must be valid for the direction of `which`.
pub(super) unsafe fn copy(which: c_long, ours: usize, program: IoVec) -> usize {
    let ours = IoVec { at: ours, len: program.len };
    let (ours, program) = ((&raw const ours).addr(), (&raw const program).addr());
    // The calling thread's number: the kernel finds no memory under the process's once the main thread has ended.
    // SAFETY: no preconditions.
    let thread = unsafe { raw::call(libc::SYS_gettid, [0; 6]) }.cast_unsigned();
    // SAFETY: both structures live until the call ends; the caller vouches for `ours`, the kernel checks `program`.
    let copied = unsafe { raw::call(which, [thread, ours, 1, program, 1, 0]) };
    usize::try_from(copied).unwrap_or(0)
}
