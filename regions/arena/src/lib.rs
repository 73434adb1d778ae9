//! Divides an address range into extents of granules, on spans of 2 MiB.
//!
//! # Picture
//! ```text
//!   range   |<-------------------------- extents tile it --------------------------->|
//!           | used | free, warm | used |        free, cold (never touched) ...       |
//!   spans   |-- 2 MiB --|-- 2 MiB --|-- 2 MiB --|     commit, warm, dirty per span
//! ```
//! A *warm* span has memory: its first touch is paid. A *dirty* granule was allocated before and may hold anything; the
//! others read as zero. First touch costs more than anything else an allocator does, so a request is placed where the
//! fewest cold spans are, then where it fits best.
//! # Knows / does not know
//! The crate knows extents, which spans are warm and granules dirty, how much free memory to retain and for how long,
//! and start offsets (colours). It does not know callers, contents of blocks, threads, faults, or the number of NUMA
//! nodes.
//! # Invariants
//! 1. Extents tile the range: no gap, no overlap; free neighbours are always coalesced.
//! 2. Granules that are not dirty read as zero.
//! 3. Free memory is returned to the [`Backing`] in whole spans only, so that no large page is split.
//! 4. Every method is called by one thread at a time (under the owner's lock); none blocks.
#![no_std]
#![expect(
    clippy::cast_possible_truncation,
    reason = "granule numbers fit: `Arena::new` refuses a longer range"
)]

mod arena;
mod backing;
mod bins;
mod colour;
mod extent;
mod near;
mod purge;
mod refusal;
mod retention;
mod span;

pub use arena::{Arena, ArenaTotals, Granules, Prefer, Request, TakeError, Taken};
pub use backing::{Backing, FarBytes, Purged, Reads};
pub use colour::Colours;
pub use near::NearMemory;
pub use refusal::Refusal;
pub use retention::{DECAY_SECONDS, Retention};
pub use span::SpanKind;

/// Size of a granule, the unit of extents, in bytes.
pub const GRANULE: usize = 16 << 10;
/// Number of granules in a span.
pub const PER_SPAN: usize = largesse_pages::SPAN / GRANULE;

#[cfg(test)]
mod tests;
