//! Memory that stays while the kernel uses it.

use super::raw;
use crate::serve;
use core::ops::Range;
use largesse_pages::base_page;

/// Pages that stay until this is dropped.
#[derive(Debug)]
pub(super) struct Stay {
    pages: Option<Range<usize>>,
    /// So many bytes from the asked address on can be used.
    pub(super) bytes: usize,
}

impl Stay {
    /// Has the first bytes of a range here, to be written if asked; perhaps not all of them.
    pub(super) fn some(at: usize, len: usize, written: bool) -> Stay {
        let pinned = if at == 0 { None } else { serve::far().and_then(|far| far.pager().pin_at(at, len)) };
        let Some((here, pages)) = pinned else { return Stay { pages: None, bytes: len } };
        for page in here.clone().step_by(base_page()) {
            // SAFETY: the program says that the kernel may use it in that way.
            unsafe { raw::touch(page, written) };
        }
        // What follows may lie in another far range.
        Stay { pages: Some(pages), bytes: here.end.min(at + len) - at }
    }

    /// Has all of a range here, over the limit if need be: it cannot be cut.
    pub(super) fn all(mut at: usize, mut len: usize, written: bool, stays: &mut Vec<Stay>) {
        while len != 0 {
            let stay = Stay::some(at, len, written);
            (at, len) = (at + stay.bytes, len - stay.bytes);
            if stay.pages.is_some() {
                stays.push(stay);
            }
        }
    }

    /// Never leaves again, in a forked child neither.
    pub(super) fn forever(mut self) {
        if let (Some(pages), Some(far)) = (self.pages.take(), serve::far()) {
            far.pager().keep(&pages);
        }
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let (Some(pages), Some(far)) = (&self.pages, serve::far()) {
            far.pager().unpin(pages);
        }
    }
}

/// Reads a word of the program, which may be far.
///
/// # Safety
/// The program has a word there.
pub(super) unsafe fn word(at: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_unaligned() }
}

/// A call whose memory is here, with the signals that the program has blocked.
pub(super) fn make(number: libc::c_long, arguments: [usize; 6], blocked: u64) -> isize {
    raw::block(blocked);
    // SAFETY: the program made this very call, or a shorter one.
    let answer = unsafe { raw::call(number, arguments) };
    raw::block(super::signals::MEANWHILE);
    answer
}
