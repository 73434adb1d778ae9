//! Decisions about far pages.
#![forbid(unsafe_code)]

pub mod eviction_cost;
mod prefetch_queue;
#[cfg(test)]
mod random;
pub mod reclaim_mode;
pub mod replacement;
mod speculative;
pub mod stall_time;
pub mod streams;
pub mod transfer;

pub use prefetch_queue::{PrefetchQueue, max_prefetch};
pub use speculative::SpeculativePages;

/// A page's number: its place in the far range and in the store, which never changes.
pub type PageNumber = usize;

/// The largest set: 2 MiB of pages of 4 KiB.
pub const MAX_TRANSFER: usize = 512;
