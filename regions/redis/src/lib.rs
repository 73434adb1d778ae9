//! Far memory on a Redis or Valkey server, or a cluster of them.
//!
//! # Picture
//! ```text
//!   RedisStore ──read, write, discard──► Servers ──by slot──► Link ──► primary ══WAIT══► replica
//!     │  ▲ reserved, written      RedisQueue ──────────────────┘  one connection, answers in the order of the requests
//!     └──┴─► Reservations ◄── keys ─────────┴── lease renewer: prolongs keys, checks the eviction policy
//! ```
//! A *home* has 2 MiB of far memory, and is one key of a server: a hash with a field for each page of 4 KiB. A page
//! whose field is missing although it was written is reported as lost, and never reads as zeros.
//! # Knows / does not know
//! Knows keys, slots, replicas, leases and the free memory of a server. Does not know the contents of pages, settings
//! or the environment: its caller passes the password in.
//! # Invariants
//! 1. A write returns only when the primary has the pages and, where there is a replica, a replica has them, too.
//! 2. Only primaries are read.
//! 3. Every key has a time to live, set in the transaction that writes to it.
//! 4. No password is in any message or in the output of `Debug`.

mod failure;
mod info;
mod layout;
mod lease_renewer;
mod link;
mod pages;
mod provider;
mod queue;
mod reservations;
mod servers;
mod shared;
mod slots;
mod store;
mod target;

pub use provider::{RedisProvider, open};
pub use target::{RedisError, Target, password_in};
