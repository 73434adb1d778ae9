//! Far memory on the other ranks of an `mpirun` or `srun`.
//!
//! # Picture
//! ```text
//!   rank 0                                            ranks 1, 2, …
//!   Ranks ──create──► RankStore ─ reserve ──► SlotAllocator serve
//!                        │           └── Commit, Release ─────► │ touch, lock, give back
//!                        └─ read, write ─► near: copy ──► memory it lends
//!                                       └► far: Wire::start, test ─► (the same)
//! ```
//! A store's queue has many copies in flight: it starts each, and tests all of them until they have ended.
//!
//! A store's bytes are divided into stripes of 2 MiB, the largest transfer unit. When a page of a stripe is reserved,
//! the stripe is assigned a *home*: a slot in the memory of a server, where servers take turns. It keeps this home
//! until no page of it is reserved.
//!
//! A server on the same machine lends a memory file (a *window*), which rank 0 maps. The program maps it, too: it
//! learns of it by [`StoreProvider::windows`](largesse_store::StoreProvider::windows) and
//! [`ProvidedStore::mapped_span`](largesse_store::ProvidedStore::mapped_span).
//!
//! The MPI library is not linked: `Mpi::load` opens a plug-in made for it (`plugin/plugin.c`).
//! # Knows / does not know
//! Knows ranks, windows and the free slots of each server. Does not know the contents of pages, when they move, the
//! program, or the environment, which the caller passes in.
//! # Invariants
//! 1. One thread calls MPI at a time.
//! 2. A slot holds one stripe of one store, and is committed before that stripe gets it as its home.
//! 3. A transfer that failed is [`StoreError::Lost`](largesse_store::StoreError::Lost): bytes that may not have been
//!    transferred are never used.

mod doorbell;
mod homes;
mod launcher;
mod lent;
mod message;
mod pace;
mod plugin;
mod queue;
mod ranks;
mod room;
mod serve;
mod servers;
mod slot_allocator;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use launcher::{Family, Launched, NotLaunched, VARIABLES};
pub use message::Message;
pub use pace::Vain;
pub use plugin::{Mpi, NotLoaded, World};
pub use ranks::Ranks;
pub use room::room;
pub use serve::{Memory, serve};
pub use servers::PATIENCE;
pub use wire::{RankCopy, Wire, WireError};
