//! Runs every comparison: rows × columns × rounds.
//!
//! # Picture
//! ```text
//!   a definition (r, far, gc, kernels): rows × columns ─► contestants
//!                                                            │
//!   session: machine ─► rounds, in turns ◄───────────────────┘
//!                          └─► outcome: medians, spreads ─► table | JSON | picture
//! ```
//! # Knows / does not know
//! Knows how to start programs and to read their results. Does not know rows and columns, nor what a program computes:
//! that, and the expected answers, are data in `benches/`.

mod definition;
mod folders;
mod machine;
mod outcome;
mod program;
mod rounds;
mod session;
mod settings;
mod stats;

pub(crate) use self::{definition::*, folders::*, machine::*, outcome::*, program::*, rounds::*};
pub(crate) use self::{session::*, settings::*, stats::*};
pub(crate) use tempfile::TempDir;

/// A result whose error is a message for the user, unless another type is named.
pub(crate) type Result<T, E = String> = std::result::Result<T, E>;
