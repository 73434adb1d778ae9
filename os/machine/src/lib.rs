//! Reads the topology of processors and the limits on memory, pins threads, and counts cycles.
//!
//! # Picture
//! ```text
//!   /sys below a root ──► Topology: packages, dies, cores, caches, NUMA nodes, distances
//!   the kernel        ──► pin: permitted and current processors; thread: scheduling of one thread
//!   main thread       ──► process: the processors of the process, on which the library's threads run
//!   control groups    ──► Room: bytes that this process may still use
//!   pthread_create    ──► service: the library's own threads, which are counted
//!   TSC, CNTVCT       ──► Counter ──start──► Stopwatch ──stop──► Ticks ──► nanoseconds
//! ```
//! # Knows / does not know
//! The crate knows processors and nodes from `/sys`, pinning of threads, and memory limits from `/proc` and control
//! groups. It does not know how memory is mapped or placed (that is `largesse_pages`), its callers, or the environment.
//! # Invariants
//! 1. Topology is read below a root path, so that a saved copy of `/sys` is read like the live one.
//! 2. A refused pin changes nothing, and its error names what was refused.
//! 3. Ticks of a counter are time, not core cycles: they are different clocks with different types.

mod affinity;
mod bitmap;
pub mod clock;
pub mod cycles;
pub mod instructions;
pub mod pin;
pub mod process;
pub mod room;
pub mod selection;
pub mod service;
pub mod thread;
pub mod topology;
pub mod unread;

pub use bitmap::{Bitmap, NotAList};
pub use room::Room;
pub use topology::Topology;
pub use unread::Unread;

/// The examples in the guide to this crate.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/machine.md")]
struct Guide;
