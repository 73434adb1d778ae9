//! Threads, handed in.

/// Threads that work together on one call. Who makes one decides how many there are, where they run, and
/// what becomes of them in a forked child.
pub trait Team: Sync {
    /// How many, the caller's own among them; at least 1.
    fn size(&self) -> usize;

    /// Call `work(0)`, …, `work(size() - 1)`, once each, at the same time, and return when all of them have.
    /// The answer is right whatever threads they run on.
    fn run(&self, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Team for Alone {
    fn size(&self) -> usize {
        1
    }

    fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        work(0);
    }
}
