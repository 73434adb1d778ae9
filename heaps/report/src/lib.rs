//! Report: the layout of what a heap says about itself, written by the heap and read by anyone.
//!
//! # Picture
//! ```text
//!   the process:  memfd "largesse"  = Signpost ──► Report ──► [BlockRecord; used]
//!                 (named mapping)                (private memory of the heap)
//!   a reader:     /proc/PID/maps finds the signpost, /proc/PID/mem reads the rest
//! ```
//! The signpost holds addresses only and never changes after it was written, so that a forked
//! child, which shares the mapping but has its own copy of the heap, is described correctly too.
//! # Knows / does not know
//! Knows field order and units. Does not know how blocks are found, nor who prints them.
//! # Invariants
//! 1. Types only: no system call, no allocation, no state (`no_std`, no dependencies).
//! 2. Every type is `#[repr(C)]`; a change of layout changes [`VERSION`].
#![no_std]
#![expect(clippy::cast_possible_truncation, reason = "the size of a structure fits 32 bits")]

mod cause;
mod process;
mod record;

pub use cause::{CAUSES, Cause};
pub use process::{COMMAND_WORDS, RECORD_VERSION, RECORD_WORDS, RecordWord, large_bytes};
pub use record::{BlockRecord, Counters, FarStore, Kind, MAX_ADVISED, Pages, Region, Report, Rest, Signpost};

/// First bytes of a [`Signpost`].
pub const MAGIC: [u8; 8] = *b"LARGESSE";
/// Changes with every change of layout; a reader refuses another one.
pub const VERSION: u32 = 5;
/// Name of the memfd, as `/proc/PID/maps` shows it: `/memfd:largesse (deleted)`.
pub const MEMFD_NAME: &core::ffi::CStr = c"largesse";
