//! The `largesse` command: starts programs, shows which pages they got, checks and measures the machine.
//!
//! # Knows / does not know
//! Knows how to start a program under `liblargesse.so`, how to read its report, and how to run the comparisons. Does
//! not know how a heap works: lower layers compute the results of subcommands.
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod agent;
mod companion;
mod descriptors;
mod doctor;
mod machine;
mod pin;
mod report;
mod run;
mod status;

use clap::{CommandFactory, Parser, Subcommand};
use largesse_far::environment;
use largesse_settings::SettingsReader;
use largesse_terminal::say::complain;
use largesse_terminal::{command_line, say};
use std::ffi::OsString;
use std::process::ExitCode;

/// Run unmodified numerical programs on large pages, aligned blocks, chosen NUMA nodes or far memory.
#[derive(Debug, Parser)]
#[command(name = "largesse", version, propagate_version = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(Box<run::Args>),
    Report(report::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    /// Compare programs with and without Largesse
    #[command(after_help = "`largesse bench --help` shows its options.")]
    Bench(companion::Args),
    Machine(machine::Args),
    Pin(pin::Args),
    /// Run Lisp: a dialect of EusLisp whose heap is delegated to threads
    #[command(after_help = "`largesse lisp --help` shows its options.")]
    Lisp(companion::Args),
    Agent(agent::Args),
}

impl Verb {
    /// Returns whether [`main`] reports unknown variables; `false` for commands that report them elsewhere.
    fn reports_unknown_variables(&self) -> bool {
        match self {
            Verb::Run(_) | Verb::Lisp(_) => false,
            Verb::Pin(args) => !args.starts_largesse(),
            Verb::Agent(args) => !args.has_owner(),
            Verb::Report(_) | Verb::Status(_) | Verb::Doctor(_) | Verb::Bench(_) | Verb::Machine(_) => true,
        }
    }
}

/// Returns the description of the command line, from which manual pages and completions are made.
#[must_use]
pub fn command() -> clap::Command {
    Command::command()
}

fn parsed(words: &[OsString]) -> Result<Command, clap::Error> {
    let command = Command::try_parse_from(words)?;
    match &command.verb {
        Verb::Pin(args) => args.with_nodes_joined(words).map_or(Ok(command), Command::try_parse_from),
        _ => Ok(command),
    }
}

/// Runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let command = match parsed(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(command) => command,
        Err(error) => return command_line::ended(error),
    };
    if command.verb.reports_unknown_variables() {
        for line in environment::remarks(SettingsReader::Other) {
            complain!("largesse: {line}");
        }
    }
    say::end(match command.verb {
        Verb::Run(args) => run::main(&args),
        Verb::Report(args) => report::main(&args),
        Verb::Status(args) => status::main(&args),
        Verb::Doctor(args) => doctor::main(&args),
        Verb::Bench(_) => companion::execute("bench"),
        Verb::Machine(args) => machine::main(&args),
        Verb::Pin(args) => pin::main(&args),
        Verb::Lisp(_) => companion::execute("lisp"),
        Verb::Agent(args) => agent::main(&args),
    })
}
