//! A user-space pager: keeps a bounded set of pages resident and the rest in a backing store, so that a program can use
//! more memory than its limit.
//!
//! # Picture
//! ```text
//!   program ──touches──► Segments ──fault──► engine ──► Pager ──read, write──► PageStore (largesse-store)
//!                            ▲                            │ │    or AsyncFiller, AsyncEvictor ──► TransferQueue
//!                            └── fill, protect, forget ───┘ └── asks for decisions ──► largesse-policy
//!
//!   fault ──► plan ──► admit ──► transfer ──► commit  (incoming.rs, admit.rs; page_in.rs or async_fill.rs; commit.rs)
//!   evict ──► select_victims ──► write back ──► commit            (victims.rs; evict.rs or async_evict.rs)
//! ```
//! A page has a fixed position in the store (its *home*, as in DLM, Midorikawa et al., FIT 2011, section 3.1); local
//! memory is a cache. A transfer moves a *unit* of 1, 2, 4 … base pages, and the size of units may change while pages
//! that were transferred in other units are resident.
//! # Knows / does not know
//! Knows pages' states and their transitions, transfers, and how faults are received. Does not know which page to evict
//! (`largesse_policy::replacement` decides, a segmented LRU driven by refault distances), which to prefetch and how
//! many to transfer (largesse-policy, too), how a store keeps pages, what the pages contain, or the environment.
//! # Lock order
//! A thread that holds a lock takes only locks of higher rank. `lock.rs` defines the ranks, and debug builds check them
//! at every lock. A lock that is only tried never waits, and may have any rank.
//!
//! | Rank | Lock | It guards | Held while |
//! |---|---|---|---|
//! | 0 | mappings (`mappings.rs`) | what the program mapped in far memory | it maps or unmaps, or forks |
//! | 1 | doorbell (`doorbell.rs`) | the right to ask for a page | a thread awaits the answer, or forks |
//! | 2 | request (`doorbell.rs`) | the page that is asked for | it is handed over |
//! | 3 | gate (`gate.rs`) | the number of threads inside the pager | one enters or leaves, or forks |
//! | 4 | faults (`fault_queue.rs`) | faults that come by signal, and buffers | they are handed over, or one forks |
//! | 5 | staging (`staging.rs`) | pages taken from the program | they are written back, or their frames filled |
//! | 6 | state (`state.rs`) | the page table and the policies | a decision is made, or one forks; never in a transfer |
//! | 7 | outside (`kernel/linux.rs`) | addresses that are no longer far memory | they are looked up, or one forks |
//! | 8 | times (`transfer_times.rs`) | the distribution of the times of transfers | one has ended |
//!
//! Locks of the store and of its broker come after all of these, and so do those of the allocator: nothing here is
//! called while they are held. A thread may therefore allocate while it holds a lock of the table. Such a lock must be
//! held over a fork if a thread can take it outside of the gate: otherwise the thread could wait for the allocator with
//! the lock held when another thread forks, and the lock would never be free in the child.
//! # Invariants
//! 1. A page is handed to the program with its last contents, or not at all: every page that is read from the store is
//!    compared with the checksum of what was written.
//! 2. Pages that were never written are never read from the store; pages that did not change are never written to it.
//! 3. The handling of a fault never touches far memory.
//! 4. Room in the store is reserved when memory is handed out.
#![cfg(not(miri))]
#![warn(clippy::too_many_lines)]

mod admit;
mod async_evict;
mod async_fill;
mod buffer;
mod change_over;
mod commit;
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
mod fork;
mod gate;
mod in_flight;
mod in_thread;
mod incoming;
mod kernel;
mod lock;
mod map;
mod mappings;
mod near_again;
mod on_cpu;
mod page;
mod page_in;
mod page_table;
mod pager;
mod pin;
mod pins;
mod recall;
mod refill;
mod segments;
mod speculative;
mod staging;
mod state;
#[cfg(test)]
mod test_pager;
mod transfer_times;
mod transfers;
mod victims;
mod watch;
mod write_copies;

pub use async_evict::AsyncEvictor;
pub use async_fill::AsyncFiller;
pub use buffer::Buffer;
pub use counters::{COUNTS, Count, Counters, MOST_SEGMENTS, SegmentWords};
pub use engine::start;
pub use error::PagerError;
pub use far::{FarMemory, Local};
pub use far_range::FarRange;
pub use fault_thread::Fatal;
pub use fork::HeldPager;
pub use kernel::{Fetch, FillOrder, Kernel, Linux, Show};
pub use lock::{MAPPINGS, RankedGuard};
pub use map::{HeldMappings, NoMapping};
pub use mappings::{MappedParts, Mappings};
pub use page::{PageState, Touch};
pub use pager::{LEAST_LOCAL, Pager};
pub use pin::LEAST_PIN;
pub use segments::{Segment, Segments};
