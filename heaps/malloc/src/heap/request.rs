//! Defines what a request for a block asks for, and the ways in which it fails.

/// The initial contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The block may hold anything.
    Any,
    /// The block is cleared.
    Zero,
}

/// The reason for which no block was allocated. The cause is counted in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The address range is full, or the request is larger than any range.
    RangeFull,
    /// The kernel refused the memory.
    NoMemory,
}

/// The error for an address in the heap's range that is not the start of a live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotABlock(pub usize);
