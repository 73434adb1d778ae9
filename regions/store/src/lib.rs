//! Stores: they keep far pages while these are not resident.
//!
//! # Picture
//! ```text
//!   pager ──reserve, read, write, discard──► PageStore
//!                                               ├─ FileStore ─► Overlay of files, used by threads of the Broker
//!                                               └─ others: the agent, a Redis server, MPI ranks
//!   pager ──start, reap──► TransferQueue ──► io_uring, or threads that call read and write; or the agent
//!   agent ──create──► StoreProvider ──► ProvidedStore: MemoryStore, or one of the others
//!         ──open_queue_over──► TransferQueue ──► connections to a Redis server, requests of MPI
//! ```
//! # Knows / does not know
//! Knows byte offsets, files, memory and forks. Does not know pages' states, when they are moved, which process asks,
//! or the environment.
//! # Invariants
//! 1. Bytes that were reserved can be written later. After a fork, which may double the space, a full disk is reported
//!    by a later write.
//! 2. After a fork each process reads what was written before it, and nothing of what the other writes after it.
//! 3. A descriptor of a store is never in the program's table.
#![cfg(not(miri))]

// Tests of queues are shared with other crates, and name this one.
#[cfg(test)]
extern crate self as largesse_store;

mod broker;
mod copy;
mod error;
mod file;
pub mod memory;
mod overlay;
mod page_store;
mod provider;
mod queue_bytes;
mod ranges;
mod room;
mod split;
mod threads;
mod transfer;

pub use broker::{Broker, HeldBroker, borrow_stderr, standard_error};
pub use copy::copy_past_caches;
pub use error::StoreError;
pub use file::{FileRefused, FileStore};
pub use overlay::{Layer, Overlay};
pub use page_store::{Fork, PageStore};
pub use provider::{MappedSpan, ProvidedStore, StoreProvider};
pub use queue_bytes::QueueBytes;
pub use ranges::{Ranges, bytes, offsets};
pub use room::available;
pub use split::SplitTransfers;
pub use threads::ThreadQueue;
pub use transfer::{Completion, Direction, Mechanism, Transfer, TransferQueue};
