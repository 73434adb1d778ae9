//! The engine of every comparison: rows × columns × rounds.
//!
//! # Picture
//! ```text
//!   a definition (r, far, gc, kernels): rows × columns ─► contestants: set up, run, tear down
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
mod warm;

pub(crate) use definition::{Bench, FarSpec, OTHER_FILES, choose, read, read_all, scaled, unknown};
pub(crate) use folders::{benches, temp_dir};
pub(crate) use machine::{MachineFacts, available_mib, processors};
pub(crate) use outcome::{Cell, Outcome, merged};
pub(crate) use program::{Measured, Run, Values, run};
pub(crate) use rounds::{Contestant, Ended, Event, Samples, take_turns};
pub(crate) use session::Session;
pub(crate) use settings::{Role, Setting, Settings};
pub(crate) use stats::{Summary, no_claim, noise};
pub(crate) use tempfile::TempDir;
pub(crate) use warm::{TOUCH_VARIABLE, touch_command, touch_mib};

/// A result whose error is a message for the user.
pub(crate) type Result<T> = std::result::Result<T, String>;
