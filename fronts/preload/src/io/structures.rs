//! Finds the memory that an `ioctl` or a socket option uses: a structure, what follows it, and what it points to.
//!
//! Each driver has structures of its own. So every word at the beginning of a structure that is the address of far
//! memory counts as a pointer, and more pages than the kernel uses may be pinned for the call.

use super::calls::LONGEST;
use super::program::read_some;
use crate::pinned::PinnedPages;

/// The longest structure in bytes of a request whose number does not contain the size: a console's font.
const UNSIZED: usize = 8 << 10;
/// Number of words at the beginning of a structure that may be pointers. `sg_io_hdr` and `v4l2_buffer` have 11.
const WORDS: usize = 16;
/// Most bytes of an array that follows a structure.
const LONGEST_TAIL: usize = 4 << 20;

/// Requests that are followed by an array: their number, the bit at which a number of elements begins in the words of
/// the structure, the number's bits, and the size of an element in bytes.
const TAILS: [(u32, usize, u32, usize); 2] = [(FIEMAP, 3 * 64, 32, 56), (DEDUPE, 2 * 64, 16, 32)];
/// `FS_IOC_FIEMAP`
const FIEMAP: u32 = 0xc020_660b;
/// `FIDEDUPERANGE`
const DEDUPE: u32 = 0xc018_9436;

/// Returns the number of bytes that an `ioctl` request uses from the address `at` on, and pins what they point to. The
/// argument may be a number instead of an address.
pub(super) fn of_request(request: u32, at: usize, pinned: &mut PinnedPages<'_>) -> usize {
    let size = match (request >> 16 & 0x3fff) as usize {
        0 => UNSIZED,
        size => size,
    };
    pin_nested(at, size, true, pinned);
    let tail = TAILS.iter().find(|&&(of, ..)| of == request).map_or(0, |&(_, bit, bits, element)| {
        let words = read_some::<WORDS>(at, size, pinned);
        let count = words[bit / 64] & ((1 << bits) - 1);
        (count * element).min(LONGEST_TAIL)
    });
    size + tail
}

/// Pins what the first words of a structure of `len` bytes point to.
pub(super) fn pin_nested(at: usize, len: usize, written: bool, pinned: &mut PinnedPages<'_>) {
    for word in read_some::<WORDS>(at, len, pinned) {
        pinned.all(word, LONGEST, written);
    }
}
