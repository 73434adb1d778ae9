//! Malloc: the large-block heap. Which request goes where, re-use, resizing, usable size.
//!
//! # Picture
//! ```text
//!   size ─► Routing ─► Heap::allocate ─► layout (header, colour) ─► Arena::take ─► block
//!                          │                                            ▲
//!                          └─ BlockRecord, Counters (the report)        └─ free, decay, trim
//! ```
//! # Knows / does not know
//! Knows sizes, headers, alignment, what a block needs when it is cleared or resized. Does not know
//! system calls, the environment, or that anybody calls it `malloc`.
//! # Invariants
//! 1. A block is known by its address: [`Heap::owns`] is one comparison, and an address that is no
//!    block of ours is refused, never guessed at.
//! 2. Nothing here allocates (`no_std`, no `alloc`): recursion into the allocator does not compile.
//! 3. One lock orders everything but the limits; contents are copied and cleared outside of it.
#![no_std]
#![expect(
    clippy::cast_possible_truncation,
    reason = "granules and slots fit: `Arena::new` refuses a longer range"
)]

mod heap;
mod layout;
mod records;
mod routing;
mod sync;

pub use heap::{Block, Fill, Heap, NotABlock, Refused, ResizeError, Resized, Settings};
pub use layout::DataAlign;
pub use routing::{BadLimits, Routing, SMALLEST_MIN};
