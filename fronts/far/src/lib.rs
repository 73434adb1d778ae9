//! Makes far memory ready for the commands that offer it (`largesse run`, `largesse lisp`), as their options say.
//!
//! # Picture
//! ```text
//!   --local, --far, --page-size ─► setting ─► options ─┬─► file:PATH
//!   LARGESSE_* ─► environment ───────┘                 ├─► `largesse agent` ─► agent:NAME
//!                                                      └─► mpi: ranks, an agent in front ─► agent:NAME
//!   counters ─► totals ─► a table
//! ```
//! # Knows / does not know
//! Knows names of stores, and how a store is made ready before the program starts. Does not know how pages are moved.
//! # Invariants
//! 1. A value without effect is refused.
//! 2. No secret of a store's name is printed.

pub mod environment;
mod error;
mod library;
pub mod mpi;
mod options;
mod setting;
mod stores;
pub mod totals;

pub use error::{FarError, shown};
pub use library::library;
pub use options::{config, ranks, set_store, start_agent, variables, warn_of_passwords};
pub use setting::{Given, Setting};
pub use stores::{ACCEPTED, PASSWORD, has_password, is_agents, without_secrets};

use largesse_terminal::{own, say};
