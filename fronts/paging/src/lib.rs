//! Makes far memory in this process from parsed settings.
//!
//! # Picture
//! ```text
//!   FarConfig ─► FarBuilder::open ─► build ─► Unstarted::start ─► FarMemory, whose faults are handled
//!                     │                │                │
//!                userfaultfd     store, kernel,     threads of
//!                                pager, tables      the pager
//! ```
//! Between the steps the library does what only it needs: it adds static arrays, refuses direct input, and filters
//! system calls.
//! # Knows / does not know
//! Knows which stores a process opens, the order of the steps, and what a user is told when one fails. Does not know
//! where settings come from, nor who uses the memory.
//! # Invariants
//! 1. No other crate opens a store for a pager, nor makes a pager over one.

mod builder;
mod config;
mod error;
mod store;

pub use builder::{Far, FarBuilder, FarPager, Unstarted, start_broker};
pub use config::{FarConfig, Store, default_file};
pub use error::Error;
pub use largesse_settings::{Amount, FaultEngine};
pub use store::{AnyStore, StoreInfo};
