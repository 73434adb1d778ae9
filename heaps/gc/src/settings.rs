//! What may be chosen when a heap is made.

/// How threads that allocate at the same time keep out of each other's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// No delegation: every cell comes from the ledger, under its lock. (The paper's figure 4a.)
    Mutex,
    /// Delegation; every allocation holds the read side of a lock whose write side a collection takes. (Its figure 4b.)
    Rwlock,
    /// Delegation; threads stop for a collection where they look, and allocate without any lock.
    #[default]
    Safepoint,
}

/// What may be chosen when a heap is made. Sizes are in bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// See [`Sync`].
    pub sync: Sync,
    /// At most so much memory is in use (and never more than the backing has).
    pub limit: usize,
    /// At least so much is handed out from one collection to the next; as much as is alive when that is more.
    pub floor: usize,
    /// So much is handed out between collections that they take about this share of time (0 to 1), but at most eight times
    /// the floor, or four times as much as is alive when that is more. 1: never more than `floor` says.
    pub gc_share: f64,
    /// Threads that mark and sweep, the one that asked for the collection among them; at least 1.
    pub gc_threads: usize,
    /// Words of a thread's root stack.
    pub root_words: usize,
    /// Collect at every n-th allocation; 0: only when it is time. For tests.
    pub stress: u64,
    /// Look at everything after each collection, and panic when it is not as it must be. For tests.
    pub verify: bool,
    /// Overwrite what is dead after each collection. For tests.
    pub poison: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
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
