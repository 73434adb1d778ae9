//! `madvise` of far memory.

use super::{Answer, quietly, refused};
use crate::backing::Far;
use crate::serve;
use core::ffi::c_int;
use core::ops::Range;
use largesse_report::Cause;

/// What becomes of an advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// The pages' contents are dropped.
    Discard,
    /// Granted without doing anything: it concerns time only, or what far memory does anyway.
    Idle,
    /// Not possible, and said so.
    Refuse,
    /// The kernel's business.
    Kernel,
}

const MADV_DONTNEED_LOCKED: c_int = 24;
const MADV_COLLAPSE: c_int = 25;

const fn course(advice: c_int) -> Course {
    match advice {
        libc::MADV_DONTNEED | libc::MADV_FREE | MADV_DONTNEED_LOCKED => Course::Discard,
        libc::MADV_WILLNEED
        | libc::MADV_COLD
        | libc::MADV_PAGEOUT
        | libc::MADV_HUGEPAGE
        | libc::MADV_NOHUGEPAGE
        | MADV_COLLAPSE
        | libc::MADV_UNMERGEABLE
        | libc::MADV_DOFORK
        | libc::MADV_KEEPONFORK => Course::Idle,
        libc::MADV_DONTFORK | libc::MADV_WIPEONFORK | libc::MADV_MERGEABLE | libc::MADV_REMOVE => {
            Course::Refuse
        }
        _ => Course::Kernel,
    }
}

/// Follows an advice about a range of which some is far.
pub(super) fn follow(far: &Far, at: &Range<usize>, advice: c_int) -> Answer {
    match course(advice) {
        Course::Idle => 0,
        Course::Refuse => {
            serve::note(Cause::FarAdvice);
            refused(libc::EINVAL)
        }
        Course::Discard => {
            let done = quietly(|| far.discard(at));
            // What lies between far ranges, or has become something else, is the kernel's. Far pages that come
            // back meanwhile are none it knows.
            for part in quietly(|| far.near_parts(at)) {
                kernel(&part, advice);
            }
            if done.is_err() {
                serve::note(Cause::OutOfMemory);
                return refused(libc::ENOMEM);
            }
            0
        }
        Course::Kernel => kernel(at, advice),
    }
}

fn kernel(at: &Range<usize>, advice: c_int) -> Answer {
    let start = core::ptr::with_exposed_provenance_mut(at.start);
    // SAFETY: what the program asked for.
    unsafe { largesse_pages::raw_madvise(start, at.len(), advice) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_change_pages_behind_the_pagers_back_never_reaches_the_kernel() {
        for (advice, want) in [
            (libc::MADV_DONTNEED, Course::Discard),
            (libc::MADV_FREE, Course::Discard),
            (libc::MADV_PAGEOUT, Course::Idle),
            (libc::MADV_DOFORK, Course::Idle),
            (libc::MADV_DONTFORK, Course::Refuse),
            (libc::MADV_MERGEABLE, Course::Refuse),
            (libc::MADV_SEQUENTIAL, Course::Kernel),
            (libc::MADV_DONTDUMP, Course::Kernel),
            (12345, Course::Kernel),
        ] {
            assert_eq!(course(advice), want, "{advice}");
        }
    }
}
