//! Defines the interface to threads, which callers supply.

/// Threads that share the work of one call. The implementation decides how many there are, where they run, and what
/// happens to them in a forked child.
pub trait Team: Sync {
    /// Returns the number of members for a call that begins now, the calling thread among them; at least 1.
    fn size(&self) -> usize;

    /// Calls `work(0)`, …, `work(members - 1)` once each, concurrently as far as there are threads, and returns when
    /// all calls have returned. `members` is a number that [`size`](Team::size) returned earlier, and may have changed
    /// since.
    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync));
}

/// The team of the calling thread alone.
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
