//! `largesse bench`: Run the comparisons.

use std::process::ExitCode;

/// Run the comparisons.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
