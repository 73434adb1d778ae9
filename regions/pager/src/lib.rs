//! Far memory: more of it than there is, because most is elsewhere.
//!
//! # Picture
//! ```text
//!   program ──touches──► Segments ──fault──► engine ──► Pager ──read, write──► PageStore
//!                            ▲                            │ │                   file, memory, …
//!                            └── fill, protect, forget ───┘ └─► Queue: who leaves next
//! ```
//! A page's place in the store never changes (its *home*, as in DLM, seed section 3.1); local memory is
//! a cache. Pages move in *sets* of 1, 2, 4 … base pages as one transfer, and the size of a set may
//! change while others are still here.
//! # Knows / does not know
//! Knows states of pages, transfers, replacement and the size of sets. Does not know what lies in
//! the pages, who asked for them, MPI, Redis, or the environment.
//! # Invariants
//! 1. A page is handed to the program as it was last left, or not at all: every page that comes back
//!    is compared with the checksum of what left.
//! 2. Pages that were never written are never read from the store; pages that did not change are
//!    never written to it.
//! 3. What serves a fault never touches far memory.
//! 4. Room in the store is reserved when memory is handed out.
#![cfg(not(miri))]

mod arrival;
mod bell;
mod beside;
mod bring;
mod broker;
mod contents;
mod copy;
mod counters;
mod engine;
mod evict;
mod far;
mod file;
mod fork;
mod gate;
mod in_thread;
mod inner;
mod kernel;
mod layers;
mod leaving;
mod mappings;
mod news;
mod page;
mod pager;
mod pin;
#[cfg(test)]
mod random;
mod ranges;
pub mod replace;
mod segments;
mod sets;
mod staging;
mod stalled;
mod store;
pub mod streams;
mod trouble;
pub mod tune;
mod turns;
mod untouched;

pub use arrival::Arrival;
pub use broker::{Broker, borrow_stderr};
pub use copy::copy_past_caches;
pub use counters::{COUNTS, Count, Counters, MOST_SEGMENTS, SegmentWords};
pub use engine::{Fatal, start};
pub use far::{FarMemory, Local, Place};
pub use file::{FileRefused, FileStore};
pub use fork::Held;
pub use kernel::{Fetch, Kernel, Linux, Show};
pub use layers::{Layers, Sheet};
pub use mappings::{Mappings, NoMapping};
pub use page::{PageNumber, State};
pub use pager::{Buffer, LEAST_LOCAL, Pager, SetSize, Touch};
pub use pin::LEAST_PIN;
pub use ranges::Ranges;
pub use segments::{Segment, Segments};
pub use store::{Fork, Found, PageStore, SpaceStore, Spaces, StoreError};
pub use trouble::Trouble;

/// The largest set: 2 MiB of pages of 4 KiB.
pub const MOST_SET: usize = 512;
