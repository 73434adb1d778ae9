//! `largesse run`: Start a program with its large blocks on large pages.

use std::process::ExitCode;

/// Start a program with its large blocks on large pages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
