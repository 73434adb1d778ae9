//! Tools for tests that run whole programs under the library.
//!
//! # Picture
//! ```text
//!   Stage (a folder anyone can read)          Run ──► Ran { stdout, stderr, exit }
//!     liblargesse.so  largesse  programs        as: the current user, and an unprivileged one
//!                                               under: nothing, or `largesse run OPTIONS`
//! ```
//! # Knows / does not know
//! Knows built files and their output. Does not know the inside of any crate.
//! # Invariants
//! 1. This crate is not a part of the product, and links no other crate of the workspace.
//! 2. A test that cannot run on this machine prints "skipped: …" with the reason. A missing library is no such reason:
//!    the test fails.

mod built;
mod cgroup;
mod features;
mod guest;
mod pool;
mod process;
mod run;
mod skip;
mod stage;
mod steps;
mod user;
mod wait;

pub use built::{built_command, built_companion, built_library, deep, workspace};
pub use cgroup::{confined, could_not_confine};
pub use features::{events_are_permitted, has_program, large_pages_are_available};
pub use guest::{Done, Guest};
pub use pool::Pool;
pub use process::{
    Owner, agent_for, agents, anonymous_kib, end, first_thread_ms, processor_ticks, shared_memory, signal,
    stop, thread_states,
};
pub use run::{Exit, Ran, Run, same_output};
pub use skip::skipped;
pub use stage::{Stage, store_in};
pub use steps::Steps;
pub use user::{User, fault_engines, is_root, users};
pub use wait::{poll, wait_for, wait_for_exit, wait_until};
