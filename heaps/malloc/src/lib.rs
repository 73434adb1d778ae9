//! Implements the large-block heap behind `malloc`: routing of requests, reuse, resizing, usable size.
//!
//! # Picture
//! ```text
//!   size ─► Routing ─► LargeBlockHeap::allocate ─► layout (header, colour) ─► Arena::take ─► block
//!                                  │                                            ▲
//!                                  └─ BlockRecord, Counters (the report)        └─ free, decay, trim
//! ```
//! # Knows / does not know
//! The crate knows sizes, headers, alignment, and the needs of clearing and resizing. It does not know system calls,
//! the environment, or the C functions that call it.
//! # Invariants
//! 1. A block is identified by its address: [`LargeBlockHeap::owns`] is one comparison, and an address in the range
//!    that is no live block is refused.
//! 2. The crate does not allocate (`no_std`, no `alloc`): recursion into the allocator does not compile.
//! 3. One lock orders everything except the routing limits; contents are copied and cleared outside of it.
#![no_std]
#![expect(
    clippy::cast_possible_truncation,
    reason = "granules and slots fit: `Arena::new` refuses a longer range"
)]

mod heap;
mod layout;
mod records;
mod routing;
#[cfg_attr(loom, expect(dead_code, reason = "loom checks the protocols alone"))]
mod small;
mod sync;

pub use heap::{
    Fill, HeapBlock, LargeBlockHeap, LargeHeapSettings, NotABlock, Refused, ResizeError, Resized,
};
pub use layout::DataAlign;
pub use routing::{BadLimits, Routing, SMALLEST_MIN};
#[cfg(not(loom))]
pub use small::{LARGEST_SMALL, SmallBlock, SmallCache, SmallHeap};
