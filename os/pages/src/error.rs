//! Errors carry what was asked and what came back; fronts word them.

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapOp {
    /// Reserving address space.
    Reserve,
    /// Making a reserved range usable.
    Commit,
    /// Advising about page sizes.
    Advise,
    /// Giving pages back.
    Purge,
    /// Moving pages to another address.
    Relocate,
    /// Populating ahead of need.
    Populate,
    /// Locking in memory.
    Lock,
    /// Placing on a NUMA node.
    Place,
    /// Moving pages to another NUMA node.
    Migrate,
    /// Making or mapping a named memory file.
    Publish,
    /// Asking what is resident.
    Inspect,
}

/// A refused request. `Copy` and free of heap data, so that an allocator can carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError {
    /// What was asked.
    pub op: MapOp,
    /// For how many bytes.
    pub len: usize,
    /// What the kernel answered.
    pub errno: i32,
}

impl MapError {
    /// The kernel had no memory (or no free page in the pool).
    #[must_use]
    pub const fn is_out_of_memory(&self) -> bool {
        self.errno == libc::ENOMEM
    }
}

impl core::fmt::Display for MapError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} of {} bytes: errno {}", self.op, self.len, self.errno)
    }
}

impl core::error::Error for MapError {}
