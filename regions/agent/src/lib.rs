//! The process beside the program that holds its far pages, and the way to it.
//!
//! # Picture
//! ```text
//!   program                                   agent: one for a program and all it starts
//!   Pager ─► AgentStore ─► Overlay ─► Space   Agent ─► Served ─► Place: a MemoryStore, or any StoreProvider
//!                │           copies │           │        ▲
//!                │                  └─ window ══╪════════╪═ memory of the agent (`memory:`), or of ranks
//!                └─ Connection ═ Ring of slots ═╪════════┘  everything else: requests, pages
//!                                 Alive ════════╛           one word: is the agent there?
//! ```
//! The two sides meet at a socket in a folder that only its user may enter, and close it as soon as they share memory.
//! # Knows / does not know
//! Knows shared memory, processes that come, fork and die, and `PageStore`. Does not know the pager, what
//! lies in pages, nor what stores other than its own memory are made of.
//! # Invariants
//! 1. After the connection is made the program needs no descriptor of ours. All that an agent has in a file system is
//!    one private folder with its socket, removed at its end, or by the next agent if it was killed.
//! 2. Either side may be killed at any moment: the other one sees it, and gives back what was shared.
//! 3. All memory of a window is taken, locked where possible, and given back by its owner: the program never
//!    finds a page missing there.
//! 4. A fork freezes what was written; the last process that reads a frozen space gives it back.
#![cfg(not(miri))]

mod agent;
mod alive;
mod client_session;
mod connection;
mod folder;
mod listener;
mod message;
mod request_slots;
mod slot;
mod socket;
mod span_cache;
mod store;
mod sync;

pub use agent::{Agent, Place};
pub use connection::AgentRefused;
pub use socket::Name;
pub use store::{About, AgentStore};

#[cfg(all(test, not(loom)))]
mod tests;
