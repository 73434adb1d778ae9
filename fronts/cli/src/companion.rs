//! Runs subcommands that are separate programs: `largesse lisp` executes `largesse-lisp`, as git does.

use crate::run::signals;
use largesse_terminal::own;
use largesse_terminal::say::complain;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// Accepts any words, which the program gets as they were typed, including each `--`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Args {
    /// Pass these options and arguments to the program
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Replaces this process by the program of the subcommand `verb`, the first word of the command line, with the words
/// after it. Returns only if that failed.
pub(crate) fn execute(verb: &str) -> ExitCode {
    let name = format!("largesse-{verb}");
    let mut command = Command::new(own::companion(&name));
    command.args(std::env::args_os().skip(2));
    signals::restore_inherited(&mut command);
    let error = command.exec();
    if error.kind() == io::ErrorKind::NotFound {
        complain!(
            "largesse: `largesse {verb}` is the program {name}, which is neither in the folder of this command nor in PATH; \
             install the package {name}, or type `make` in Largesse's sources"
        );
        return ExitCode::from(127);
    }
    complain!("largesse: {} was not started: {error}", largesse_terminal::name(own::companion(&name)));
    ExitCode::from(126)
}
