//! Processors and limits: topology, pinning, how much memory is left, and a cycle counter that cannot be misread.
//!
//! # Picture
//! ```text
//!   /sys below a root ──► Topology: packages, dies, cores, caches, NUMA nodes, distances
//!   the kernel        ──► pin: what this process may run on, and where it does; thread: the scheduler's view of one
//!   control groups    ──► Room: bytes that this process may still use
//!   pthread_create    ──► service: threads of the library's own, which are counted
//!   TSC, CNTVCT       ──► Counter ──start──► Stopwatch ──stop──► Ticks ──► nanoseconds
//! ```
//! # Knows / does not know
//! Knows what `/sys` says about processors and nodes, and how to stay on some of them, and what `/proc` and control groups say about
//! limits on memory. Does not know how memory is mapped or placed (that is `largesse_pages`), who asks, or the environment.
//! # Invariants
//! 1. Topology is read below a root path: a saved `/sys` reads like the live one.
//! 2. A refused pin changes nothing, and says what was refused.
//! 3. Ticks of a counter are time, not cycles of a core: the two clocks differ, and are never mixed.

mod bitmap;
pub mod clock;
pub mod cycles;
pub mod instructions;
pub mod pin;
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
