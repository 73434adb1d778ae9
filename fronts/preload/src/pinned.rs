//! Keeps memory of the program resident while the kernel uses it.
//!
//! Addresses and lengths are the program's and may be invalid. They are never dereferenced here: pages are pinned and
//! paged in by number, and the kernel checks the addresses when the call is made.

use crate::heap;
use crate::in_progress::{CallResource, Holder};
use crate::lost::give_up;
use crate::near_calls::{self, HeldCall};
use crate::own_stacks::OwnStacks;
use crate::settings::store_is_everywhere;
use largesse_pager::LEAST_PIN;

/// A buffer of the program, laid out as `struct iovec`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct IoVec {
    /// Address of the first byte.
    pub(crate) at: usize,
    /// Length in bytes.
    pub(crate) len: usize,
}

/// Returns at most `most` bytes of buffers, beginning at byte `from`.
pub(crate) fn slice(parts: &[IoVec], from: usize, most: usize) -> Vec<IoVec> {
    let (mut skip, mut left, mut slice) = (from, most, Vec::with_capacity(parts.len()));
    for part in parts {
        if skip >= part.len && part.len > 0 {
            skip -= part.len;
            continue;
        }
        let len = (part.len - skip).min(left);
        slice.push(IoVec { at: part.at.wrapping_add(skip), len });
        skip = 0;
        left -= len;
        if left == 0 {
            break;
        }
    }
    slice
}

/// Keeps far pages pinned and resident until it is dropped, or the call for which they are pinned was abandoned.
#[derive(Debug)]
pub(crate) struct PinnedPages<'a> {
    holder: Holder<'a>,
    /// Number of pinned far pages.
    pages: usize,
}

impl PinnedPages<'_> {
    /// Pins nothing yet. The pager is not asked about the stacks in `own`, which are pinned already.
    pub(crate) fn new(own: &OwnStacks) -> PinnedPages<'_> {
        PinnedPages { holder: Holder::new(own), pages: 0 }
    }

    /// Makes the far pages of a structure resident, writable if `written`, and exceeds the limit of local memory if
    /// necessary, since a structure cannot be split. The caller bounds `len` by the bytes that the kernel uses.
    pub(crate) fn all(&mut self, at: usize, len: usize, written: bool) {
        let mut done = 0;
        while done < len {
            done += self.some(IoVec { at: at.wrapping_add(done), len: len - done }, written, LEAST_PIN);
        }
    }

    /// Makes bytes of the program's buffers resident: at most `most`, beginning at byte `from`, within half of local
    /// memory or [`LEAST_PIN`] pages. Returns the resident parts, which have at least one byte if `most` is not 0.
    pub(crate) fn first(&mut self, parts: &[IoVec], from: usize, most: usize, written: bool) -> Vec<IoVec> {
        let mut first = slice(parts, from, most);
        for number in 0..first.len() {
            let (part, mut done) = (first[number], 0);
            while done < part.len {
                let rest = IoVec { at: part.at.wrapping_add(done), len: part.len - done };
                let more = self.some(rest, written, LEAST_PIN.saturating_sub(self.pages));
                if more == 0 {
                    first[number].len = done;
                    first.truncate(number + usize::from(done > 0));
                    return first;
                }
                done += more;
            }
        }
        first
    }

    /// Makes the first `least` far pages of a buffer resident, or more, or all if it has fewer. Returns the number of
    /// bytes from its start to the first page that may be far and is not pinned.
    fn some(&mut self, IoVec { at, len }: IoVec, written: bool, least: usize) -> usize {
        if at == 0 || self.holder.own.contain(at, len) {
            return len;
        }
        if heap::far().is_none() {
            match near_calls::hold(at, len) {
                HeldCall::Listed(number) => {
                    self.holder.begin();
                    self.holder.add(CallResource::Near(number));
                    return len;
                }
                HeldCall::NotOurs => return len,
                HeldCall::ByPager => {}
            }
        }
        let Some(far) = heap::far() else { return len };
        if !far.pager().kernel().touches(&(at..at.saturating_add(len))) {
            return len;
        }
        self.holder.begin();
        let Some((here, pages)) = far.pager().pin_at(at, len, least) else { return len };
        if pages.is_empty() {
            return here.start.saturating_sub(at);
        }
        self.pages += pages.len();
        self.holder.add(CallResource::Pages(pages.clone()));
        if let Err(error) = far.pager().page_in(&pages, written, store_is_everywhere()) {
            give_up(&error.to_string());
        }
        // The rest may lie in another far range.
        here.end.min(at.saturating_add(len)) - at
    }

    /// Makes these pages unevictable for good, also in forked children.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn forever(self) {
        for held in self.holder.take() {
            match (held, heap::far()) {
                (CallResource::Pages(pages), Some(far)) => far.pager().keep(&pages),
                (CallResource::Near(number), _) => near_calls::keep(number),
                _ => {}
            }
        }
    }
}
