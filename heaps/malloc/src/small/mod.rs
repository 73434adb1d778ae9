//! Allocates small blocks in slabs of one size, whose records are outside of the memory that they describe.
//!
//! ```text
//!   allocate ─► SmallCache: a bit of a word ─empty─► the next word of the owned slab ─none─► a listed slab
//!                                                                                  ─none─► an idle one, a new span
//!   free ─► the block's bit; the first of a full slab lists it
//! ```
//! # Invariants
//! 1. No function reads or writes a block: a free block may be on a page that was swapped out.
//! 2. Nothing waits for a lock, except `SmallHeap::reclaim`: a thread may be interrupted at any instruction by a
//!    handler that forks, and another thread may fork.

#[cfg(not(loom))]
mod cache;
mod class;
#[cfg(not(loom))]
mod heap;
mod list;
mod slab;

#[cfg(not(loom))]
pub use cache::SmallCache;
#[cfg(not(loom))]
pub use class::LARGEST_SMALL;
#[cfg(not(loom))]
pub use heap::{SmallBlock, SmallHeap};
