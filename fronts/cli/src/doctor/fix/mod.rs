//! `--fix` and `--undo`: a plan made of single steps, then carried out, said, or printed as commands.
//!
//! # Invariants
//! 1. A plan is made whole before its first step is taken; a file that is not ours ends it there.
//! 2. Files are written before values: a former value is on disk before it is overwritten.

mod apply;
mod own;
mod plan;
mod step;
mod undo;

pub(crate) use apply::{How, apply};
pub(crate) use plan::{FixOptions, plan};
pub(crate) use undo::undo;
