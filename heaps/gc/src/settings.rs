//! Defines the settings of a heap.

/// Selects how threads that allocate at the same time are synchronised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// No delegation: every cell comes from the keep, under its lock (figure 4a of EusLisp, Matsui and Sekiguchi
    /// 1995).
    Mutex,
    /// Delegation; every allocation holds the read side of a lock whose write side a collection takes (its figure
    /// 4b).
    Rwlock,
    /// Delegation; threads stop for a collection at safepoints, and allocate without a lock.
    #[default]
    Safepoint,
}

/// Holds the settings of a heap. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct GcSettings {
    /// The synchronisation of allocating threads.
    pub sync: Sync,
    /// Largest number of bytes in use; the size of the backing bounds it as well.
    pub limit: usize,
    /// Smallest number of bytes allocated between two collections; the live bytes when they are more.
    pub floor: usize,
    /// Share of time (0 to 1) that collections should take, which enlarges the budget to at most eight times the
    /// floor or four times the live bytes, whichever is more. 1 never enlarges it.
    pub gc_share: f64,
    /// Number of threads that mark and sweep, including the one that requested the collection; at least 1.
    pub gc_threads: usize,
    /// Capacity of a thread's root stack, in words.
    pub root_words: usize,
    /// For tests: collect at every n-th allocation; 0 only when a collection is due.
    pub stress: u64,
    /// For tests: verify the whole heap after each collection, and panic when an invariant is broken.
    pub verify: bool,
    /// For tests: overwrite dead objects after each collection.
    pub poison: bool,
}

impl Default for GcSettings {
    fn default() -> GcSettings {
        GcSettings {
            sync: Sync::default(),
            limit: usize::MAX,
            floor: 32 << 20,
            gc_share: 0.1,
            gc_threads: std::thread::available_parallelism().map_or(1, core::num::NonZero::get),
            root_words: 1 << 20,
            stress: 0,
            verify: false,
            poison: false,
        }
    }
}
