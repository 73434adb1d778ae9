//! The rows and columns of `largesse bench far`: page sizes or peers, and shares of local memory.

use crate::args::{MARKED, Peer};
use serde_json::{Value, json};

/// Page size that the library's tuner chooses.
pub(super) const AUTO: &str = "auto";

/// A row of the table: a page size of Largesse, or a peer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Way {
    Pages(String),
    Peer(Peer),
}

/// A column of the table: a share of local memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct FarColumn {
    pub(super) percent: u8,
    /// Bytes of `--local`.
    pub(super) local: u64,
    /// Limit of the control group, in bytes, if there is one.
    pub(super) limit: Option<u64>,
}

impl Way {
    pub(super) fn name(&self) -> &str {
        match self {
            Way::Pages(size) => size,
            Way::Peer(Peer::Swap) => "swap",
            Way::Peer(Peer::Zram) => "zram",
        }
    }

    /// Returns the JSON keys that identify it.
    pub(super) fn keys(&self) -> Value {
        match self {
            Way::Pages(size) => json!({ "page_size": size }),
            Way::Peer(peer) => json!({ "peer": peer }),
        }
    }

    /// Returns whether it is a page size that the tuner does not change.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Way::Pages(size) if ![AUTO, MARKED].contains(&&**size))
    }
}

impl FarColumn {
    pub(super) fn keys(self) -> Value {
        json!({ "local_percent": self.percent })
    }
}
