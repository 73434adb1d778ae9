//! Defines the settings of a heap.

/// How threads that allocate at the same time are synchronised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// Every cell comes from the keep, under its lock, without delegation (figure 4a of Matsui and Sekiguchi's paper
    /// on EusLisp, 1995).
    Mutex,
    /// Cells come from delegated blocks. Every allocation holds the read side of a lock, and a collection its write
    /// side (figure 4b of Matsui and Sekiguchi's paper on EusLisp, 1995).
    Rwlock,
    /// Cells come from delegated blocks, without a lock. Threads stop for a collection at safepoints.
    #[default]
    Safepoint,
}

/// The settings of a heap. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct GcSettings {
    /// The synchronisation of allocating threads.
    pub sync: Sync,
    /// Largest number of bytes in use. The heap uses no more than the size of the backing in any case.
    pub limit: usize,
    /// Smallest number of bytes allocated between two collections. If more bytes than these are live, the live bytes
    /// count instead.
    pub floor: usize,
    /// Share of time (0 to 1) that collections should take. If they take more, more bytes are allocated between two
    /// collections: at most eight times the floor or four times the live bytes, whichever is more. 1 disables this.
    pub gc_share: f64,
    /// Number of threads that mark and sweep, including the one that requested the collection; at least 1.
    pub gc_threads: usize,
    /// Capacity of a thread's root stack, in words.
    pub root_words: usize,
    /// For tests: collect at every n-th allocation. With 0, collect only when a collection is due.
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
