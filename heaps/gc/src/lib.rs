//! Implements a garbage-collected heap for many threads, with blocks delegated to each.
//!
//! # Picture
//! ```text
//!   thread ─► Context: cursor, limit ──used up──► Delegation: next run, next block
//!                 │                                       │ no block left
//!                 ▼                                       ▼
//!              objects        Collection ──sweeps──► Keep: blocks of each class, Fibonacci buddy
//!                                 │ marks                 ▼
//!                              Language             HeapSpans ─► Backing
//! ```
//! All threads share one heap, and objects never move. Memory is divided into blocks of 32 KiB, whose cells have one
//! size and one [`Layout`]. The global *keep* holds the blocks; some are *delegated* to threads, which allocate cells
//! from free runs in them by advancing a cursor, without a lock or an atomic operation. (After EusLisp: Matsui and
//! Sekiguchi, "Thread Distributed Memory Management Scheme of Multithread Concurrent EusLisp", 1995, where cells are
//! delegated.)
//!
//! An example language of numbers and pairs:
//! ```
//! use core::ptr::NonNull;
//! use largesse_arena::NearMemory;
//! use largesse_gc::{Heap, Language, Layout, GcSettings, Tracer, Word};
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
//! let heap = Heap::new(Pairs, GcSettings::default(), memory)?;
//! let handle = heap.register_thread(); // before the thread starts: every collection includes it
//! let thread = std::thread::spawn(move || {
//!     let mut thread = handle.enter();
//!     let mut list = Word(0);
//!     for number in 0..1000 {
//!         let mark = thread.mark();
//!         thread.push(list).unwrap(); // a root: `allocate` may collect
//!         let pair = thread.allocate(Layout::Slots, 2).unwrap();
//!         thread.release(mark);
//!         // SAFETY: the pair has two words, and no other thread has its address yet.
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
//! Knows blocks, size classes, threads that stop at safepoints, and liveness. Does not know the structure of objects:
//! a [`Language`] says which words are references. Does not know the source of memory (any `Backing`), nor the
//! environment.
//! # Invariants
//! 1. A free cell has one owner: the keep or one delegation.
//! 2. Memory from a bump's cursor to its limit is zero.
//! 3. A thread is registered before it can allocate; a collection runs while no registered thread accesses objects.
//! 4. A collection frees cells by mark bits alone: it neither reads nor writes dead cells.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "block numbers fit, as `Buddy` is limited to their range; totals become ratios"
)]

mod blocks;
mod buddy;
mod classes;
mod collect;
mod context;
mod delegation;
mod error;
mod heap;
mod heap_spans;
mod histogram;
mod keep;
mod language;
mod layout;
mod mark;
mod mark_queues;
#[cfg(all(test, loom))]
mod models;
mod mutator;
mod pace;
mod partial;
mod reached;
mod record;
mod settings;
mod side;
mod statistics;
mod sweep;
mod sync;
mod verify;
mod worker_pool;
mod world;

pub use blocks::{BLOCK, POISON};
pub(crate) use classes::AllocationClass;
pub use classes::LARGEST_CELL;
pub use context::{Bump, Context};
pub use error::{OutOfMemory, RootsFull, StartError};
pub use heap::Heap;
pub use histogram::Histogram;
pub use language::{Language, Tracer};
pub use layout::{Layout, Word};
pub use mutator::{Mutator, RootHeight, ThreadHandle};
pub use settings::{GcSettings, Sync};
pub use statistics::{Cells, Collections, Delegated, FarCollections, Statistics};

/// The examples in the guide to this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/gc.md")]
struct Guide;
