//! Who looks at the objects of this process, and who forks: never both at once.
//!
//! The C library holds a lock of the dynamic linker for who looks. A child that is forked meanwhile finds it taken for
//! good: it could load no object, and not look itself.

use core::sync::atomic::{AtomicU32, Ordering};

/// Threads that look.
static LOOKING: AtomicU32 = AtomicU32::new(0);
/// Threads that fork: who wants to look waits. (Not by a lock: a thread that holds the linker's may come here, too.)
static FORKING: AtomicU32 = AtomicU32::new(0);

/// While it lives, this thread looks.
pub(super) struct Looking(());

impl Looking {
    pub(super) fn begin() -> Looking {
        loop {
            // SeqCst, here and below: of a forker and one who begins to look, one sees the other.
            LOOKING.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                return Looking(());
            }
            LOOKING.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

impl Drop for Looking {
    fn drop(&mut self) {
        LOOKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Before `fork`, and before every other lock of ours, which who looks may want: from now on nobody begins to look.
/// Those who look already are done when [`nobody_looks`].
pub(crate) fn look_no_more() {
    FORKING.fetch_add(1, Ordering::SeqCst);
}

pub(crate) fn nobody_looks() -> bool {
    LOOKING.load(Ordering::SeqCst) == 0
}

/// After `fork`, in the parent.
pub(crate) fn look_again() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

/// In the child, whose only thread calls.
pub(crate) fn look_afresh() {
    FORKING.store(0, Ordering::SeqCst);
    LOOKING.store(0, Ordering::SeqCst);
}
