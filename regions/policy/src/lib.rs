//! Policies of far memory: which pages to evict, what to prefetch, and how many pages to transfer at once.
//!
//! # Picture
//! ```text
//!   fault ──► Streams ──► PrefetchQueue ──► which pages to fill next
//!     │          └ dense or strided ──► TransferUnits: how many at once ◄── Regions ◄── SetDuel, or ComputeCore
//!   fill ───► ReplacementQueue, SpeculativePages ──► which pages to evict
//!   samples ► Coldness ──► which pages to evict first after a change-over
//!   usage ──► NearAgain ──► when all swapped-out pages are fetched back
//!   times ──► EvictionCost, ReclaimMode ──► the cost of evictions, in the background or on demand
//! ```
//! `ReplacementQueue` is a segmented LRU (Karedla, Love and Wherry 1994). Its `insert` computes the refault distance of
//! each page that is filled again.
//!
//! Each kind of policy has a simple baseline, which `Policies` can use instead: `Fifo` for the trait `Replacement`,
//! `NoPrefetch` for the trait `Prefetch`, and a fixed `TransferSize`. That of the trait `Coldness` is `Unsampled`.
//! # Knows / does not know
//! Knows page numbers, counts and durations, which its caller measures and passes in. Does not know pages' states or
//! contents, stores, threads or the kernel.
//! # Invariants
//! 1. No unsafe code, no input or output, no clock: the same calls give the same decisions.
//! 2. A decision is never needed for correctness. Any answer leaves the program's data intact.
#![forbid(unsafe_code)]

mod coldness;
pub mod eviction_cost;
mod free_reserve;
mod latency;
mod near_again;
mod policies;
mod prefetch_queue;
pub mod reclaim_mode;
pub mod replacement;
mod service_time;
mod speculative;
pub mod stall_time;
pub mod streams;
pub mod transfer;

pub use coldness::{Coldness, SpanAges, Unsampled};
pub use free_reserve::FreeReserve;
pub use latency::Latencies;
pub use near_again::{NearAgain, NearWish, Usage};
pub use policies::Policies;
pub use prefetch_queue::{PrefetchQueue, max_prefetch};
pub use service_time::ServiceTime;
pub use speculative::SpeculativePages;

/// The number of a page: its position in far memory and in the store, which never changes.
pub type PageNumber = usize;

/// Largest size of a transfer unit, as a number of base pages: 2 MiB with pages of 4 KiB.
pub const MAX_TRANSFER: usize = 512;

/// Number of standard errors at which a measured cost or gain is significant. It is large because there are many
/// comparisons.
pub(crate) const SIGNIFICANT: f64 = 3.0;
