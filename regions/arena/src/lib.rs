//! Arena: address space cut into extents of granules, on spans of 2 MiB.
//!
//! # Picture
//! ```text
//!   range   |<-------------------------- extents tile it --------------------------->|
//!           | used | free, warm | used |        free, cold (never touched) ...       |
//!   spans   |-- 2 MiB --|-- 2 MiB --|-- 2 MiB --|     commit, warm, dirty per span
//! ```
//! A *warm* span has memory behind it: its first touch is paid. A *dirty* granule was in someone's
//! hands and may hold anything; the rest reads as zero. First touch costs more than anything else
//! an allocator does, so a request goes where the fewest cold spans are, then where it fits best.
//! # Knows / does not know
//! Knows extents, what is warm and dirty, how much to retain and for how long, and start offsets
//! (colours). Does not know who asks, what a block holds, threads, faults, or how many nodes exist.
//! # Invariants
//! 1. Extents tile the range: no gap, no overlap; two free neighbours never stay apart.
//! 2. Granules that are not dirty read as zero.
//! 3. Free memory is handed back to the [`Backing`] in whole spans only, so that no large page is
//!    split.
//! 4. Every method is called by one thread at a time (the owner's lock); nothing here blocks.
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
mod retain;
mod span;

pub use arena::{Arena, Granules, Prefer, Request, TakeError, Taken, Totals};
pub use backing::{Backing, Purged};
pub use colour::Colours;
pub use near::{NearMemory, Refusal};
pub use retain::{DECAY_SECONDS, Retention};
pub use span::SpanKind;

/// Bytes of a granule, the unit of extents.
pub const GRANULE: usize = 16 << 10;
/// Granules in a span.
pub const PER_SPAN: usize = largesse_pages::SPAN / GRANULE;

#[cfg(test)]
mod tests;
