//! `--fix` and `--undo`: make a plan of single steps, then perform it or print it.
//!
//! # Invariants
//! 1. A plan is complete before its first step is performed; a foreign file with our name prevents it.
//! 2. Files are written before kernel settings, so that an earlier value is on disk before it is overwritten.

mod apply;
mod own;
mod plan;
mod step;
mod undo;

pub(crate) use apply::{How, apply};
pub(crate) use plan::{FixOptions, plan};
pub(crate) use undo::undo;
