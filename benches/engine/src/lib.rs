//! Runs the comparisons of `largesse bench`, a command that executes this program. The module `engine` has what they
//! share.
//!
//! # Invariants
//! 1. No time is printed of an answer that was not found right.
//! 2. Contestants take turns, each is first equally often, and the same amount of memory is touched
//!    and freed before every run, and again right before the clock starts (see `engine::machine`).
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod args;
mod engine;
mod far;
mod gc;
mod kernels;
mod r;

use args::{Args, FAR, GC, KERNELS, TOUCH};
use clap::CommandFactory as _;
use engine::{Bench, Result, Settings};
use largesse_terminal::command_line;
use largesse_terminal::say::{self, complain_lines, say};
use std::process::ExitCode;

/// Returns the description of the command line, from which manual pages and completions are made.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the program `largesse-bench`.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => return command_line::ended(error),
    };
    say::end(match args.and_then(|args| compare(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain_lines!("largesse bench: {error}");
            ExitCode::from(2)
        }
    })
}

/// Runs the chosen comparison and prints it. Returns whether everything ran and every answer agrees.
fn compare(args: &Args) -> Result<bool> {
    if args.name == TOUCH {
        return engine::touch_mib(args.touch.unwrap_or(0)).map(|()| true);
    }
    match &*args.name {
        GC => return gc::compare(args),
        KERNELS => return kernels::compare(args),
        _ => {}
    }
    let root = engine::benches(args.programs.as_deref())?;
    let benches = engine::choose(engine::read_all(&root)?, &args.name, &args.only)?;
    let settings = Settings::read(&root)?;
    if args.list {
        benches.iter().for_each(list);
        return Ok(true);
    }
    let compare = if args.name == FAR { far::compare } else { r::compare };
    compare(args, &root, &benches, &settings)
}

/// Prints a bench and its tests, with the names that `--only` takes.
fn list(bench: &Bench) {
    let when = if bench.only_by_name { "; runs only when named" } else { "" };
    say!("{}: {} (group {}{when})", bench.name, bench.title, bench.group);
    for test in &bench.tests {
        say!("  {:24} {}", format!("{}/{}", bench.name, test.name), test.title);
    }
}
