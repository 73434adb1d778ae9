//! Implements `madvise` on far memory.

use super::quietly;
use crate::answer::{Answer, refused};
use crate::backing::Far;
use crate::causes;
use core::ffi::c_int;
use core::ops::Range;
use largesse_report::Cause;

/// The treatment of an advice of `madvise` about far memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// The contents of the pages are discarded.
    Discard,
    /// The call succeeds without any effect: the advice concerns speed only, or far memory behaves as advised anyway.
    Idle,
    /// The call fails with `EINVAL`, since far memory cannot follow the advice.
    Refuse,
    /// The kernel handles the advice.
    Kernel,
}

const MADV_DONTNEED_LOCKED: c_int = 24;
const MADV_COLLAPSE: c_int = 25;

const fn handling(advice: c_int) -> Handling {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => Handling::Discard,
        libc::MADV_WILLNEED
        | libc::MADV_COLD
        | libc::MADV_PAGEOUT
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | MADV_COLLAPSE
        | libc::MADV_UNMERGEABLE
        | libc::MADV_DOFORK
        | libc::MADV_KEEPONFORK => Handling::Idle,
        libc::MADV_DONTFORK | libc::MADV_WIPEONFORK | libc::MADV_MERGEABLE | libc::MADV_REMOVE => {
            Handling::Refuse
        }
        _ => Handling::Kernel,
    }
}

/// Follows an advice about a range that includes far pages.
pub(super) fn follow(far: &Far, at: &Range<usize>, advice: c_int) -> Answer {
    match handling(advice) {
        Handling::Idle => 0,
        Handling::Refuse => {
            causes::note(Cause::FarAdvice);
            refused(libc::EINVAL)
        }
        Handling::Discard => {
            let done = quietly(|| far.discard(at));
            // The kernel discards what lies between far ranges or is no longer far, and so never pages that are filled
            // after the discard.
            for part in quietly(|| far.near_parts(at)) {
                kernel(&part, advice);
            }
            if done.is_err() {
                causes::note(Cause::OutOfMemory);
                return refused(libc::ENOMEM);
            }
            0
        }
        Handling::Kernel => kernel(at, advice),
    }
}

fn kernel(at: &Range<usize>, advice: c_int) -> Answer {
    let start = core::ptr::with_exposed_provenance_mut(at.start);
    // SAFETY: the program asked for it.
    unsafe { largesse_pages::raw_madvise(start, at.len(), advice) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_advice_never_reaches_the_kernel() {
        for (advice, want) in [
            (libc::MADV_DONTNEED, Handling::Discard),
            (libc::MADV_FREE, Handling::Discard),
            (libc::MADV_PAGEOUT, Handling::Idle),
            (libc::MADV_DOFORK, Handling::Idle),
            (libc::MADV_DONTFORK, Handling::Refuse),
            (libc::MADV_MERGEABLE, Handling::Refuse),
            (libc::MADV_SEQUENTIAL, Handling::Kernel),
            (libc::MADV_DONTDUMP, Handling::Kernel),
            (12345, Handling::Kernel),
        ] {
            assert_eq!(handling(advice), want, "{advice}");
        }
    }
}
