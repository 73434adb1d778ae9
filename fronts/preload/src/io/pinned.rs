//! Memory of the program that is resident while the kernel uses it.
//!
//! Addresses and lengths are the program's and may be wrong in every way. Nothing here touches them: pages are pinned and
//! paged in by number, and whether the call may use them is the kernel's to say when it is made.

use super::raw;
use crate::far::{give_up, stores_everywhere};
use crate::serve;
use core::ops::Range;
use largesse_pager::LEAST_PIN;
use largesse_policy::PageNumber;

/// A buffer of the program: a `struct iovec`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Part {
    /// Its address.
    pub(super) at: usize,
    /// Its length in bytes.
    pub(super) len: usize,
}

/// Pages that are pinned and resident until this is dropped.
#[derive(Debug)]
pub(super) struct Stays<'a> {
    held: Vec<Range<PageNumber>>,
    /// Addresses that stay anyway: the program's stack for signals. A handler of ours that runs there makes calls itself
    /// (where the clock is one), perhaps with the pager's lock held: the pager must not be asked then.
    own: &'a Range<usize>,
}

impl Stays<'_> {
    pub(super) const fn new(own: &Range<usize>) -> Stays<'_> {
        Stays { held: Vec::new(), own }
    }

    /// Makes the far pages of a structure resident, `written` if the kernel may write there; beyond the limit if need be, since
    /// a structure cannot be cut. The caller bounds the length by what the kernel uses at most.
    pub(super) fn all(&mut self, at: usize, len: usize, written: bool) {
        let mut done = 0;
        while done < len {
            done += self.some(Part { at: at.wrapping_add(done), len: len - done }, written, LEAST_PIN);
        }
    }

    /// Makes the first bytes of the program's buffers resident, from byte `from` of them on and `most` bytes at most, within
    /// half of local memory or [`LEAST_PIN`] pages. Returns these bytes, which are at least one if `most` is.
    pub(super) fn first(&mut self, parts: &[Part], from: usize, most: usize, written: bool) -> Vec<Part> {
        let (mut skip, mut left, mut first) = (from, most, Vec::with_capacity(parts.len()));
        for part in parts {
            if skip >= part.len && part.len > 0 {
                skip -= part.len;
                continue;
            }
            let part = Part { at: part.at.wrapping_add(skip), len: (part.len - skip).min(left) };
            skip = 0;
            let mut done = 0;
            while done < part.len {
                let pages: usize = self.held.iter().map(Range::len).sum();
                let rest = Part { at: part.at.wrapping_add(done), len: part.len - done };
                let more = self.some(rest, written, LEAST_PIN.saturating_sub(pages));
                if more == 0 {
                    break;
                }
                done += more;
            }
            left -= done;
            if done > 0 || part.len == 0 {
                first.push(Part { at: part.at, len: done });
            }
            if done < part.len || left == 0 {
                break;
            }
        }
        first
    }

    /// Makes the first far pages of a part resident, at least `least` of them as far as there are any. Returns the bytes from its start up to
    /// where pages may be far and are not pinned.
    fn some(&mut self, Part { at, len }: Part, written: bool, least: usize) -> usize {
        if at == 0 || (self.own.contains(&at) && len <= self.own.end - at) {
            return len;
        }
        let Some(far) = serve::far() else { return len };
        let Some((here, pages)) = far.pager().pin_at(at, len, least) else { return len };
        if pages.is_empty() {
            return here.start.saturating_sub(at);
        }
        let paged_in = far.pager().page_in(&pages, written, stores_everywhere());
        self.held.push(pages);
        if let Err(trouble) = paged_in {
            give_up(&trouble.to_string());
        }
        // The rest may lie in another far range.
        here.end.min(at.saturating_add(len)) - at
    }

    /// These pages are never evicted again, nor in a forked child.
    pub(super) fn forever(mut self) {
        if let Some(far) = serve::far() {
            self.held.drain(..).for_each(|pages| far.pager().keep(&pages));
        }
    }
}

impl Drop for Stays<'_> {
    fn drop(&mut self) {
        if let Some(far) = serve::far() {
            self.held.iter().for_each(|pages| far.pager().unpin(pages));
        }
    }
}

/// Makes a call with the signals that the program has blocked.
pub(super) fn make(number: libc::c_long, arguments: [usize; 6], blocked: u64) -> isize {
    raw::block(blocked);
    // SAFETY: the program made this very call, or one that does a part of it with memory that the program named for it or
    // that is ours. The kernel checks every address.
    let answer = unsafe { raw::call(number, arguments) };
    raw::block(super::signals::MEANWHILE);
    answer
}
