//! Holds the processes that have large blocks, as the list and its table show them.

use serde::Serialize;

/// The result of looking at all processes.
#[derive(Debug, Default, Serialize)]
pub(super) struct ProcessList {
    pub(super) processes: Vec<Summary>,
    /// Number of processes that this user may not look at.
    pub(super) not_permitted: u64,
    /// Processes whose report could not be read.
    pub(super) left_out: Vec<LeftOut>,
}

/// A process whose report cannot be read, with the reason.
#[derive(Debug, Serialize)]
pub(super) struct LeftOut {
    pub(super) pid: u32,
    pub(super) why: String,
}

/// The line of one process; sizes are in bytes.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) pid: u32,
    pub(super) command: String,
    pub(super) pages: &'static str,
    pub(super) blocks: u64,
    /// Number of blocks that the other numbers leave out.
    pub(super) left_out: u64,
    pub(super) bytes: u64,
    /// Bytes in memory, or `None` if unknown.
    pub(super) resident_bytes: Option<u64>,
    pub(super) large_bytes: Option<u64>,
    /// Number of requests that got less than they asked for.
    pub(super) not_granted: u64,
}
