//! `largesse status`: Show every block of a process and the pages it really has.

use std::process::ExitCode;

/// Show every block of a process and the pages it really has.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn main(_args: &Args) -> ExitCode {
    ExitCode::FAILURE
}
