//! The parameter of a request for a block, and the ways in which requests fail.

/// Selects the initial contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The block may hold anything.
    Any,
    /// The block is cleared.
    Zero,
}

/// Tells why no block was allocated; the cause is counted in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address range is full, or the request is larger than any range.
    RangeFull,
    /// The kernel refused the memory.
    NoMemory,
}

/// Reports an address in the heap's range that is not a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotABlock(pub usize);
