//! Defines the layout of the report that a heap writes about itself and other processes read.
//!
//! # Picture
//! ```text
//!   the process:  memfd "largesse"  = Signpost ──► HeapReport ──► [BlockRecord; used]
//!                 (named mapping)                (private memory of the heap)
//!   a reader:     /proc/PID/maps finds the signpost, /proc/PID/mem reads the rest
//! ```
//! The signpost holds addresses only and never changes after it was written, so that a forked child, which shares the
//! mapping but has its own copy of the heap, is described correctly as well.
//! # Knows / does not know
//! The crate knows field order and units. It does not know how blocks are found and displayed.
//! # Invariants
//! 1. The crate has types only: no system call, no allocation, no state (`no_std`, no dependencies).
//! 2. Every type is `#[repr(C)]`; a change of layout changes [`VERSION`].
#![no_std]
#![expect(clippy::cast_possible_truncation, reason = "the size of a structure fits 32 bits")]

mod cause;
mod process;
mod record;

pub use cause::{CAUSES, Cause};
pub use process::{COMMAND_WORDS, RECORD_VERSION, RECORD_WORDS, RecordWord, large_bytes};
pub use record::{
    BlockKind, BlockRecord, Counters, FarStore, HeapReport, MAX_ADVISED, PageChoice, Region, Rest, Signpost,
};

/// The first bytes of a [`Signpost`].
pub const MAGIC: [u8; 8] = *b"LARGESSE";
/// Version of the layout, which changes with every change of the layout. Readers refuse other versions.
pub const VERSION: u32 = 8;
/// Name of the memory file with the signpost. `/proc/PID/maps` shows it as `/memfd:largesse (deleted)`.
pub const MEMFD_NAME: &core::ffi::CStr = c"largesse";
