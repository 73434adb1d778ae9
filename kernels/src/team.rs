//! Defines the interface to threads, which callers supply.

/// Runs the work of one call on threads. The implementation decides how many there are, where they run, and what
/// happens to them in a forked child.
pub trait Team: Sync {
    /// Returns the number of members for a call that begins now, the calling thread among them; at least 1.
    fn size(&self) -> usize;

    /// Calls `work(0)`, …, `work(members - 1)` once each, concurrently where there are threads for it, and returns when
    /// all calls have returned. `members` is what [`size`](Team::size) returned, which may have changed since.
    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync));
}

/// Runs all work on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Team for Alone {
    fn size(&self) -> usize {
        1
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..members).for_each(work);
    }
}
