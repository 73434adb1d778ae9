//! Prevents a fork while another thread enumerates the loaded objects.
//!
//! The C library holds a lock of the dynamic linker during an enumeration. In a child forked at that time the lock
//! would never be released: the child could neither load nor enumerate objects.

use core::sync::atomic::{AtomicU32, Ordering};

/// Number of threads that enumerate objects.
static ENUMERATING: AtomicU32 = AtomicU32::new(0);
/// Number of threads that fork, for which new enumerations wait. (This is no lock, since the waiting thread may hold
/// the linker's.)
static FORKING: AtomicU32 = AtomicU32::new(0);

/// Marks the calling thread as enumerating objects until it is dropped.
pub(super) struct Enumeration(());

impl Enumeration {
    pub(super) fn begin() -> Enumeration {
        loop {
            // SeqCst, here and below: of a forking and an enumerating thread, at least one sees the other.
            ENUMERATING.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                return Enumeration(());
            }
            ENUMERATING.fetch_sub(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

impl Drop for Enumeration {
    fn drop(&mut self) {
        ENUMERATING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Prevents new enumerations. Called before `fork`, and before taking any lock of ours that an enumerating thread may
/// want. The present enumerations have ended once [`is_over`] returns `true`.
pub(crate) fn forbid() {
    FORKING.fetch_add(1, Ordering::SeqCst);
}

/// Returns whether no thread enumerates objects.
pub(crate) fn is_over() -> bool {
    ENUMERATING.load(Ordering::SeqCst) == 0
}

/// Allows enumerations again, in the parent after `fork`.
pub(crate) fn allow() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

/// Resets both counts in a forked child, whose only thread calls this.
pub(crate) fn reset_in_child() {
    FORKING.store(0, Ordering::SeqCst);
    ENUMERATING.store(0, Ordering::SeqCst);
}
