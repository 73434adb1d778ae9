//! Far memory on the other ranks of an `mpirun` or `srun`.
//!
//! # Picture
//! ```text
//!   rank 0                                            ranks 1, 2, …
//!   Ranks ──create──► RankStore ─ reserve ──► Ledger        serve
//!                        │           └── Commit, Release ─────► │ touch, lock, give back
//!                        └─ read, write ─► near: copy ──► memory it lends
//!                                       └► far: Wire::get, put ─► (the same)
//! ```
//! A store's bytes are cut into stripes of 2 MiB, the largest set of pages. A stripe gets its *home* when
//! any of it is reserved, the servers in turn, and keeps it until nothing of it is wanted.
//!
//! What a server of this machine lends is a file in memory, which rank 0 maps, and, told of it by [`StoreProvider::windows`](largesse_store::StoreProvider::windows)
//! and [`ProvidedStore::mapped_span`](largesse_store::ProvidedStore::mapped_span), the program as well.
//!
//! The MPI library is not linked: `Mpi::load` opens a plug-in made for it (`plugin/plugin.c`).
//! # Knows / does not know
//! Knows ranks, windows and who has room. Does not know what is in the pages, when they move, the
//! program, or the environment: whoever calls hands it in.
//! # Invariants
//! 1. One thread calls MPI at a time.
//! 2. A slot belongs to one stripe of one store, and there is memory behind it before it does.
//! 3. A transfer that failed is [`StoreError::Lost`](largesse_store::StoreError::Lost): nobody goes on
//!    with bytes that may not have come.

mod doorbell;
mod homes;
mod launcher;
mod lent;
mod message;
mod pace;
mod plugin;
mod ranks;
mod room;
mod serve;
mod slot_allocator;
mod store;
#[cfg(test)]
mod tests;
mod wire;

pub use launcher::{Family, Launched, NotLaunched, VARIABLES};
pub use message::Message;
pub use pace::Vain;
pub use plugin::{Mpi, NotLoaded, World};
pub use ranks::{PATIENCE, Ranks};
pub use room::room;
pub use serve::{Memory, serve};
pub use wire::{Wire, WireError};
