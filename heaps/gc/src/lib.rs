//! A garbage-collected heap for many threads, delegated to them block by block.
//!
//! # Picture
//! ```text
//!   thread ─► Context: cursor, limit ──used up──► Delegation: next run, next block
//!                 │                                       │ nothing left
//!                 ▼                                       ▼
//!              objects        Collection ──sweeps──► Ledger: blocks of a lane, Fibonacci buddy
//!                                 │ marks                 ▼
//!                              Language               Ground ─► Backing
//! ```
//! The heap is one for all threads, and objects never move. Memory is cut into blocks of 32 KiB, whose cells have
//! one size and one [`Layout`]. A global *ledger* has the blocks; threads are *delegated* some of them, and
//! take cells from free runs there by moving a cursor: no lock, no atomic. (After Matsui and Sekiguchi, "Thread
//! Distributed Memory Management Scheme of Multithread Concurrent EusLisp", where cells are delegated.)
//!
//! A language of numbers and pairs:
//! ```
//! use core::ptr::NonNull;
//! use largesse_arena::NearMemory;
//! use largesse_gc::{Heap, Language, Layout, Settings, Tracer, Word};
//! use largesse_pages::{PageKind, Placement, Reserved, SPAN};
//!
//! struct Pairs;
//!
//! // SAFETY: a number has its lowest bit set, the empty list is zero, every other word is a pair; pairs are
//! // `Layout::Slots`, so that `trace` is never called; there are no global roots.
//! unsafe impl Language for Pairs {
//!     fn reference(word: Word) -> Option<NonNull<u64>> {
//!         if word.0 & 1 == 1 { None } else { NonNull::new(core::ptr::with_exposed_provenance_mut(word.0 as usize)) }
//!     }
//!     unsafe fn trace(&self, _: NonNull<u64>, _: &mut Tracer<'_, Pairs>) {}
//!     fn roots(&self, _: &mut Tracer<'_, Pairs>) {}
//! }
//!
//! let range = Reserved::new(64 * SPAN, SPAN)?;
//! let memory = NearMemory::new(range, PageKind::Thp, Placement::FirstTouch, false);
//! let heap = Heap::new(Pairs, Settings::default(), memory)?;
//! let seat = heap.enrol(); // before the thread exists: no collection can miss it
//! let thread = std::thread::spawn(move || {
//!     let mut thread = seat.enter();
//!     let mut list = Word(0);
//!     for number in 0..1000 {
//!         let mark = thread.mark();
//!         thread.push(list).unwrap(); // a root: `allocate` may collect
//!         let pair = thread.allocate(Layout::Slots, 2).unwrap();
//!         thread.release(mark);
//!         // SAFETY: the pair has two words, and no other thread knows it yet.
//!         unsafe {
//!             pair.write(number << 1 | 1);
//!             pair.add(1).write(list.0);
//!         }
//!         list = Word(pair.as_ptr().expose_provenance() as u64);
//!         thread.poll();
//!     }
//! });
//! thread.join().unwrap();
//! assert_eq!(heap.statistics().allocations(), 1000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! # Knows / does not know
//! Knows blocks, sizes, threads that stop at safepoints, what is alive. Does not know what an object is: a [`Language`]
//! says which words are references. Does not know where memory comes from (any `Backing`), nor the environment.
//! # Invariants
//! 1. A free cell is in one thread's hands at most: it belongs to the ledger, to one delegation, or is in use.
//! 2. From the cursor of a lane to its limit everything is zero.
//! 3. A thread is enrolled before it can allocate; a collection runs while no enrolled thread touches objects.
//! 4. What a collection frees is found from marks alone: no dead cell is read or written.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "block numbers fit: `Buddy` takes no longer range; sums become ratios"
)]

mod blocks;
mod buddy;
mod classes;
mod collect;
mod context;
mod worker_pool;
mod delegation;
mod error;
mod heap_spans;
mod heap;
mod histogram;
mod language;
mod keep;
mod mark;
#[cfg(all(test, loom))]
mod models;
mod mutator;
mod pace;
mod record;
mod settings;
mod mark_queues;
mod side;
mod statistics;
mod sweep;
mod sync;
mod verify;
mod world;

pub use blocks::BLOCK;
pub use classes::LARGEST_CELL;
pub(crate) use classes::Lane;
pub use context::{Bump, Context};
pub use error::{OutOfMemory, RootsFull, StartError};
pub use heap::Heap;
pub use histogram::Histogram;
pub use language::{Language, Layout, Word};
pub use mark::Tracer;
pub use mutator::{Mark, Mutator, Seat};
pub use settings::{Settings, Sync};
pub use statistics::{Cells, Collections, Delegated, Statistics};
pub use verify::POISON;
