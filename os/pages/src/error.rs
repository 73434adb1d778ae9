//! Defines errors that carry the request and the kernel's answer. Front ends turn them into messages.

/// The operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapOp {
    /// Address space could not be reserved.
    Reserve,
    /// A reserved range could not be made accessible.
    Commit,
    /// Advice about page sizes, about the use of pages, or about inheritance by children was refused.
    Advise,
    /// Pages could not be returned to the kernel.
    Purge,
    /// Pages could not be moved to another address.
    Relocate,
    /// Pages could not be populated before their first touch.
    Populate,
    /// Pages could not be locked in memory.
    Lock,
    /// A NUMA policy could not be set.
    Place,
    /// Pages could not be moved to another NUMA node.
    Migrate,
    /// A shared memory file could not be created or mapped.
    Publish,
    /// The residency or the nodes of pages could not be read.
    Inspect,
}

/// A request that the kernel refused. It is `Copy` and free of heap data, so that an allocator can return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError {
    /// Operation that was requested.
    pub op: MapOp,
    /// Number of bytes in the request, or 0 for a request without a length.
    pub len: usize,
    /// The `errno` that the kernel returned.
    pub errno: i32,
}

impl MapError {
    /// Returns whether the cause is that the kernel had no memory, or the hugetlb pool no free page.
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
