//! Reads settings, the texts of options and environment variables, by pure functions.
//!
//! # Picture
//! ```text
//!   `--local 4GB`, LARGESSE_LOCAL=4GB, far_memory("4GB") ─► size ──► bytes, or the reason and what to type
//!   `--far file:/x`, `--fault-engine thread` ─────────────► far ───► the store and the engine
//!   LARGESSE_LOCKED=1 ────────────────────────────────────► names ─► the known name that is nearest
//! ```
//! # Knows / does not know
//! Knows how sizes and stores are written, the bounds of each size that is a setting, and the names of the variables.
//! Does not know where a value comes from, nor what is done with it: the command, the library and the R package share
//! this crate.
//! # Invariants
//! 1. The same text means the same number of bytes, or the same refusal, in every option, variable and argument.
//! 2. No allocation and no state (`no_std`, no dependencies): the library reads settings before `main`.
#![no_std]

mod far;
mod names;
mod remark;
mod size;
mod threads;

pub use far::{FaultEngine, SWITCH, StoreName};
pub use names::{PREFIX, VARIABLES, is_known, nearest};
pub use remark::{Remark, SettingsReader};
pub use size::{
    Amount, MemoryLimit, Misread, Short, block_size, header, heap_size, limit, local, memory, page_size,
    room, touch,
};
pub use threads::{NotThreads, threads};
