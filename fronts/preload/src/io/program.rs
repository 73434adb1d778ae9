//! Reads and writes words and strings of the program, at addresses that may be invalid.

use crate::pinned::{IoVec, PinnedPages};
use crate::user_memory::{copy, read_array};

/// Most bytes in a path, with its NUL.
const PATH: usize = 4096;
/// Number of bytes of a path that are copied at a time.
const CHUNK: usize = 256;

/// Reads `N` words of the program; returns `None` if some are inaccessible. `pinned` keeps their far pages resident.
pub(super) fn read<const N: usize>(at: usize, pinned: &mut PinnedPages<'_>) -> Option<[usize; N]> {
    read_array(at, 1, pinned)?.pop()
}

/// Reads a number of four bytes of the program; returns `None` if it is inaccessible.
pub(super) fn read_number(at: usize, pinned: &mut PinnedPages<'_>) -> Option<usize> {
    let mut number = 0_u32;
    let part = IoVec { at, len: size_of::<u32>() };
    pinned.all(at, part.len, false);
    // SAFETY: the number has `part.len` bytes, and any bytes are one.
    let got = unsafe { copy(libc::SYS_process_vm_readv, (&raw mut number).addr(), part) };
    (got == part.len).then_some(number as usize)
}

/// Reads at most `N` words of the program, and 0 for those that are inaccessible.
pub(super) fn read_some<const N: usize>(at: usize, len: usize, pinned: &mut PinnedPages<'_>) -> [usize; N] {
    let mut words = [0; N];
    let part = IoVec { at, len: len.min(size_of_val(&words)) };
    pinned.all(at, part.len, false);
    // SAFETY: the words have at least `part.len` bytes, and any bytes are words.
    unsafe { copy(libc::SYS_process_vm_readv, words.as_mut_ptr().addr(), part) };
    words
}

/// Writes words to the program, whose far pages `pinned` keeps resident. Returns `false` if some are inaccessible.
pub(super) fn write(at: usize, words: &[usize], pinned: &mut PinnedPages<'_>) -> bool {
    let len = size_of_val(words);
    pinned.all(at, len, true);
    // SAFETY: the words are readable.
    unsafe { copy(libc::SYS_process_vm_writev, words.as_ptr().addr(), IoVec { at, len }) == len }
}

/// Makes a path resident. Returns its length in bytes with the NUL; one without a NUL ends at an inaccessible byte or
/// after [`PATH`] bytes.
pub(super) fn text(at: usize, pinned: &mut PinnedPages<'_>) -> usize {
    text_of(at, PATH, pinned)
}

/// Makes a C string of at most `most` bytes resident, as [`text`] does.
pub(super) fn text_of(at: usize, most: usize, pinned: &mut PinnedPages<'_>) -> usize {
    let mut len = 0;
    while len < most {
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
