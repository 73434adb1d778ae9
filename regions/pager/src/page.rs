//! States of pages, touches of pages, and the checks of their bytes.

use core::ops::Range;
use largesse_policy::PageNumber;

/// The state of a page of far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum PageState {
    /// Not resident and never stored: it reads as zero.
    #[default]
    Zero = 0,
    /// In flight to the program: being read or filled. Threads that touch the page wait.
    Filling,
    /// Resident and write-protected. The store holds the same contents, or they are all zero.
    Clean,
    /// Resident and writable. Its contents may differ from those in the store.
    Dirty,
    /// In flight to the store: being evicted. Threads that touch the page wait.
    Leaving,
    /// Not resident. The store holds its contents.
    SwappedOut,
    /// No longer far memory: the program mapped something else there.
    Outside,
}

impl PageState {
    /// Returns whether the page takes local memory.
    #[must_use]
    pub const fn is_resident(self) -> bool {
        !matches!(self, PageState::Zero | PageState::SwappedOut | PageState::Outside)
    }

    /// Returns whether the page is *missing*: not resident, but far memory that can be filled.
    #[must_use]
    pub const fn is_missing(self) -> bool {
        matches!(self, PageState::Zero | PageState::SwappedOut)
    }

    /// Returns whether a thread of the pager works on the page, so that others must wait.
    #[must_use]
    pub const fn in_flight(self) -> bool {
        matches!(self, PageState::Filling | PageState::Leaving)
    }
}

/// A touch of a page of far memory, which the kernel reported as a fault, or which a thread asks to be served.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// Number of the page.
    pub page: PageNumber,
    /// Whether the touch is a write.
    pub write: bool,
}

/// Returns the checksum of a page's contents. Pages with equal checksums of 64 bits are taken for equal: an evicted
/// page whose checksum is that of the store's copy is not written back.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

/// Returns whether all bytes of a page are zero, so that its contents need not be stored.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: any eight bytes are a number; the middle part is aligned.
    let (head, words, tail) = unsafe { bytes.align_to::<u64>() };
    head.iter().chain(tail).all(|&byte| byte == 0) && words.iter().all(|&word| word == 0)
}

/// Returns a page number, or a number of pages, with the 32 bits that the policies use.
pub(crate) fn number(page: usize) -> u32 {
    u32::try_from(page).unwrap_or(u32::MAX)
}

/// Returns the longest run of consecutive pages around `at`, inside `within`, for which `same` is true.
pub(crate) fn run_around(
    at: PageNumber,
    within: Range<PageNumber>,
    same: impl Fn(PageNumber) -> bool,
) -> Range<PageNumber> {
    let start = (within.start..at).rev().take_while(|&page| same(page)).last().unwrap_or(at);
    let end = (at + 1..within.end).find(|&page| !same(page)).unwrap_or(within.end.max(at + 1));
    start..end
}

/// Cuts a range into its longest runs of pages for which `of` returns equal values. Pages for which it returns `None`
/// are left out.
pub(crate) fn runs<T: PartialEq + Copy>(
    range: Range<PageNumber>,
    of: impl Fn(PageNumber) -> Option<T>,
) -> Vec<(Range<PageNumber>, T)> {
    let mut found: Vec<(Range<PageNumber>, T)> = Vec::new();
    for page in range {
        let Some(kind) = of(page) else { continue };
        match found.last_mut() {
            Some((run, last)) if run.end == page && *last == kind => run.end = page + 1,
            _ => found.push((page..page + 1, kind)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ends_at_another_answer_or_the_bounds() {
        let even_tens = |page: usize| (page / 10).is_multiple_of(2);
        assert_eq!(run_around(25, 0..100, even_tens), 20..30);
        assert_eq!(run_around(25, 22..27, even_tens), 22..27);
        assert_eq!(run_around(20, 20..21, even_tens), 20..21);
    }

    #[test]
    fn runs_leave_out_pages_without_answer() {
        let kind = |page: usize| (page != 4).then_some(page < 7);
        assert_eq!(runs(2..9, kind), [(2..4, true), (5..7, true), (7..9, false)]);
        assert!(runs(4..5, kind).is_empty());
    }
}
