//! The agent, a process that holds the far pages of a program, and the program's connection to it.
//!
//! # Picture
//! ```text
//!   program                                        agent: one for a program and its descendants
//!   Pager ─► AgentStore ─► Overlay ─► AgentLayer   Agent ─► ClientSession ─► PageStorage: MemoryStore or StoreProvider
//!                │           copies │                │          ▲
//!                │                  └─ window ═══════╪══════════╪═ memory of the agent (`memory:`) or of MPI ranks
//!                ├─ Connection ═══ RequestSlots ═════╪══════════╛  otherwise: requests and page contents
//!                └─ AgentQueue ═══ TransferSlots ═══ ServedQueue ─► TransferQueue of the store: many in flight
//!                                  Alive ════════════╛             one word: whether the agent is alive
//! ```
//! The two sides exchange the shared memory over a socket in a folder that only its user may enter, then close it.
//! # Knows / does not know
//! The crate knows shared memory, processes that connect, fork and die, and `PageStore`. It does not know the pager,
//! the contents of pages, nor how stores other than its own memory work.
//! # Invariants
//! 1. Once connected, the program needs no descriptor of the agent. All that an agent has in a file system is one
//!    private folder with its socket, which it removes when it ends; if it was killed, the next agent removes it.
//! 2. Either side may be killed at any moment: the other side detects it and frees the shared memory.
//! 3. The owner of a window allocates its memory, locks it where possible, and frees it: the program never faults on
//!    a missing page there.
//! 4. A fork freezes the pages written before it; a frozen store is freed when the last process that reads it ends.
#![cfg(not(miri))]

mod agent;
mod alive;
mod client_session;
mod connection;
mod folder;
mod index_ring;
mod layer;
mod listener;
mod message;
mod queue;
mod request_slots;
mod served_queue;
mod slot;
mod socket;
mod span_cache;
mod store;
mod sync;
mod transfer_slots;

pub use agent::{Agent, PageStorage};
pub use connection::AgentRefused;
pub use socket::Name;
pub use store::{About, AgentStore};

#[cfg(all(test, not(loom)))]
mod tests;
