//! A user-space pager: keeps a bounded set of pages resident and the rest in a backing store, so that a program can use more
//! memory than its limit.
//!
//! # Picture
//! ```text
//!   program ──touches──► Segments ──fault──► engine ──► Pager ──read, write──► PageStore (largesse-store)
//!                            ▲                            │ │    or AsyncFiller, AsyncEvictor ──► TransferQueue
//!                            └── fill, protect, forget ───┘ └── asks for decisions ──► largesse-policy
//! ```
//! A page has a fixed position in the store (its *home*, as in DLM, Midorikawa et al., FIT 2011, section 3.1); local memory
//! is a cache. A transfer moves a *unit* of 1, 2, 4 … base pages, and the size of units may change while pages that were
//! transferred in other units are resident.
//! # Knows / does not know
//! Knows pages' states and their transitions, transfers, and how faults are received. Does not know which page to evict or
//! prefetch and how many to transfer (largesse-policy decides), how a store keeps pages, what the pages contain, or the
//! environment.
//! # Invariants
//! 1. A page is handed to the program with its last contents, or not at all: every page that is read from the store is
//!    compared with the checksum of what was written.
//! 2. Pages that were never written are never read from the store; pages that did not change are never written to it.
//! 3. The handling of a fault never touches far memory.
//! 4. Room in the store is reserved when memory is handed out.
#![cfg(not(miri))]

mod async_evict;
mod async_fill;
mod buffer;
mod contents;
mod counters;
mod doorbell;
mod engine;
mod error;
mod evict;
mod fairness;
mod far;
mod far_range;
mod fault_queue;
mod fault_thread;
mod fill_order;
mod fork;
mod gate;
mod in_flight;
mod in_thread;
mod incoming;
mod kernel;
mod map;
mod mappings;
mod notify;
mod on_cpu;
mod page;
mod page_in;
mod page_table;
mod pager;
mod pin;
mod pins;
mod queue_memory;
mod segments;
mod speculative;
mod staging;
mod state;
mod transfers;

pub use async_evict::AsyncEvictor;
pub use async_fill::AsyncFiller;
pub use buffer::Buffer;
pub use counters::{COUNTS, Count, Counters, MOST_SEGMENTS, SegmentWords};
pub use engine::start;
pub use error::PagerError;
pub use far::{FarMemory, Local};
pub use far_range::FarRange;
pub use fault_thread::Fatal;
pub use fill_order::FillOrder;
pub use fork::HeldPager;
pub use kernel::{Fetch, Kernel, Linux, Show};
pub use map::NoMapping;
pub use mappings::Mappings;
pub use page::{PageState, Touch};
pub use pager::{LEAST_LOCAL, Pager};
pub use pin::LEAST_PIN;
pub use segments::{Segment, Segments};
