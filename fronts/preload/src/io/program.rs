//! Copies from and to memory of the program whose address is the program's, and may be wrong.
//!
//! The kernel copies (`process_vm_readv` on this process): where a page may not be used the copy ends, and nothing is raised.

use super::pinned::{Part, Stays};
use super::raw;
use core::ffi::c_long;

/// The longest path, with its end.
const PATH: usize = 4096;
/// Bytes of a path that are looked at together.
const LOOK: usize = 256;

/// `N` words of the program, or `None` where it may not read them. Far pages are resident while `stays` lives.
pub(super) fn read<const N: usize>(at: usize, stays: &mut Stays<'_>) -> Option<[usize; N]> {
    read_array(at, 1, stays)?.pop()
}

/// `len` structures of `N` words each.
pub(super) fn read_array<const N: usize>(
    at: usize,
    len: usize,
    stays: &mut Stays<'_>,
) -> Option<Vec<[usize; N]>> {
    let mut array = vec![[0; N]; len];
    let (to, bytes) = (array.as_mut_ptr().addr(), size_of_val(&*array));
    stays.all(at, bytes, false);
    // SAFETY: the array has `bytes` bytes, and any bytes are words.
    let got = unsafe { copy(libc::SYS_process_vm_readv, to, Part { at, len: bytes }) };
    (got == bytes).then_some(array)
}

/// Writes words to the program, with `stays` for far pages. `false`: it may not write to all of them.
pub(super) fn write(at: usize, words: &[usize], stays: &mut Stays<'_>) -> bool {
    let len = size_of_val(words);
    stays.all(at, len, true);
    // SAFETY: the words are readable.
    unsafe { copy(libc::SYS_process_vm_writev, words.as_ptr().addr(), Part { at, len }) == len }
}

/// Bytes of a C string with its end, as far as a path goes and the program may read it; all of them are resident.
pub(super) fn text(at: usize, stays: &mut Stays<'_>) -> usize {
    let mut len = 0;
    while len < PATH {
        let from = at.wrapping_add(len);
        // Within a page, so that it can be read or not.
        let mut bytes = [1; LOOK];
        let bytes = &mut bytes[..LOOK - from % LOOK];
        stays.all(from, bytes.len(), false);
        let part = Part { at: from, len: bytes.len() };
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
/// There are `program.len` bytes at `ours`, to be read or to be written.
pub(super) unsafe fn copy(which: c_long, ours: usize, program: Part) -> usize {
    let ours = Part { at: ours, len: program.len };
    let (ours, program) = ((&raw const ours).addr(), (&raw const program).addr());
    // The calling thread, not the process: the kernel finds no memory under the number of a first thread that has ended.
    // SAFETY: no preconditions.
    let thread = unsafe { raw::call(libc::SYS_gettid, [0; 6]) }.cast_unsigned();
    // SAFETY: two parts that live until the call ends, of which the caller promises the first; the kernel checks the other.
    let copied = unsafe { raw::call(which, [thread, ours, 1, program, 1, 0]) };
    usize::try_from(copied).unwrap_or(0)
}
