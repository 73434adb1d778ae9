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

mod contents;
mod counters;
mod doorbell;
mod engine;
mod error;
mod evict;
mod fairness;
mod far;
mod fill_order;
mod fork;
mod gate;
mod in_thread;
mod kernel;
mod mappings;
mod notify;
mod on_cpu;
mod page;
mod page_in;
mod pager;
mod pin;
mod segments;
mod speculative;
mod staging;
mod state;
mod transfers;

pub use counters::{COUNTS, Count, Counters, MOST_SEGMENTS, SegmentWords};
pub use engine::{Fatal, start};
pub use error::Error;
pub use far::{FarMemory, FarRange, Local};
pub use fill_order::FillOrder;
pub use fork::HeldPager;
pub use kernel::{Fetch, Kernel, Linux, Show};
pub use mappings::{Mappings, NoMapping};
pub use page::PageState;
pub use pager::{Buffer, LEAST_LOCAL, Pager, Touch};
pub use pin::LEAST_PIN;
pub use segments::{Segment, Segments};
