//! `largesse doctor`: Check what this machine grants and say how to get more.

use std::process::ExitCode;

/// Check what this machine grants and say how to get more.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
