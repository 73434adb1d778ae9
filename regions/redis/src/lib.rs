//! Far memory on a Redis or Valkey server, or a cluster of them.
//!
//! # Picture
//! ```text
//!   Space ──read, write, discard──► Servers ──by slot──► Link ──► primary ══WAIT══► replica
//!     │  ▲ promised, written          │                   one connection, one exchange at a time
//!     └──┴─► Ledger ◄── keys ─────────┴── Keeper: renews leases, looks whether keys may be evicted
//! ```
//! A *home*, 2 MiB of far memory, is one key, a hash with a field for each page of 4 KiB: a page that is
//! gone is seen to be gone, and never reads as zeros.
//! # Knows / does not know
//! Knows keys, slots, replicas, leases, how much room a server has. Does not know what lies in pages,
//! and reads neither settings nor the environment: a front hands the password in.
//! # Invariants
//! 1. A write has returned only when the primary has it and, where there is a replica, a replica too.
//! 2. Only primaries are read.
//! 3. Every key has a time to live, set in the transaction that writes to it.
//! 4. No password is in any message or in what `Debug` prints.

mod failure;
mod info;
mod layout;
mod lease_renewer;
mod link;
mod provider;
mod reservations;
mod servers;
mod slots;
mod store;
mod target;

pub use provider::{RedisSpaces, open};
pub use target::{RedisRefused, Target, password_in};
