//! `largesse pin`: starts a program on chosen processors and NUMA nodes.
//!
//! # Picture
//! ```text
//!   --cpus, --cpunodebind ──────────────► affinity of this thread   ─┐
//!   --threads ─► threads: liblargesse_pin.so and its list of cpus   ─┼─► exec (this process becomes the program)
//!   --node, --interleave, --preferred ─► memory: policy of this thread ─┘
//! ```
//! # Knows / does not know
//! Knows which processors and nodes exist. Needs a library for `--threads` only: the other options work for every
//! program, including static ones.
//! # Invariants
//! 1. The program is not started unless its placement is granted in full.

mod memory;
mod threads;

use crate::run::{LaunchError, signals};
use largesse_machine::selection::{SelectionError, is_nodes, select_here};
use largesse_machine::{Bitmap, Topology, pin};
use largesse_terminal::say::complain_lines;
use largesse_terminal::{line, word};
use memory::PlacementError;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Start a program on chosen processors, and its memory on chosen NUMA nodes.
///
/// CPUS is a list (0-3,8 or 0-14:2), a mask (0xff), or groups of this machine: N:0-3 (the first four cores), S0:0-3 (of
/// socket 0), M1 (all of NUMA node 1), C0 (a last-level cache), D0 (a die), S:scatter (one processor of each socket in
/// turn), E:N:4:1:2 (four processors, the first of every two); join them with @. NODES is a list (0-1,3), all, !1 (all
/// but 1) or +0 (the first one that may be used).
///
/// The program replaces this command, so that its exit status and signals reach the caller. Largesse itself exits with
/// 2 (wrong options, or a processor or a node that does not exist or may not be used), 125 (--threads finds no usable
/// liblargesse_pin.so), 126 (the program cannot be executed, or cannot load that library) or 127 (it was not found).
#[derive(Debug, clap::Args)]
#[command(override_usage = "largesse pin [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct Args {
    /// Run on these processors
    #[arg(short = 'c', long, visible_alias = "physcpubind", visible_short_alias = 'C')]
    #[arg(value_name = "CPUS", allow_hyphen_values = true)]
    cpus: Option<String>,
    /// Run on the processors of these NUMA nodes
    #[arg(short = 'N', long, value_name = "NODES", conflicts_with = "cpus")]
    cpunodebind: Option<String>,
    /// Run each thread on one of these processors, in the order in which threads start
    #[arg(short = 't', long, value_name = "CPUS", conflicts_with_all = ["cpus", "cpunodebind"])]
    threads: Option<String>,
    /// Place memory on these NUMA nodes only
    #[arg(short = 'm', long, visible_alias = "membind", value_name = "NODES")]
    #[arg(conflicts_with_all = ["interleave", "preferred", "localalloc"])]
    node: Option<String>,
    /// Spread memory over these NUMA nodes, page by page [default: all]
    #[arg(short = 'i', long, value_name = "NODES", conflicts_with_all = ["preferred", "localalloc"])]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    interleave: Option<String>,
    /// Place memory on NUMA node N while it has room
    #[arg(short = 'p', long, value_name = "N", conflicts_with = "localalloc")]
    preferred: Option<u32>,
    /// Place memory on the node of the processor that first touches it, whatever policy was inherited
    #[arg(short = 'l', long)]
    localalloc: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// The reason why the program was not started.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "nothing to do: give --cpus CPUS, --threads CPUS, --cpunodebind NODES, --node NODES, --interleave, \
         --preferred N or --localalloc"
    )]
    NothingToDo,
    #[error("{option}: {}", line(.error.to_string()))]
    Cpus { option: &'static str, error: SelectionError },
    #[error("{option}: {error}")]
    Pin { option: &'static str, error: pin::PinError },
    #[error("{}", line(.0.to_string()))]
    Memory(PlacementError),
    #[error("--threads: {0}")]
    Threads(LaunchError),
    #[error("{}{}", word(.name), unstarted(.error))]
    Exec { name: OsString, error: io::Error },
}

/// Says why `exec` failed.
fn unstarted(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => ": not found".to_owned(),
        _ => format!(" was not started: {error}"),
    }
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let Err(error) = start(args);
    complain_lines!("largesse: {error}");
    match &error {
        Error::Exec { error, .. } if error.kind() == io::ErrorKind::NotFound => 127.into(),
        Error::Exec { .. } => 126.into(),
        Error::Threads(error) => error.exit_code(),
        _ => 2.into(),
    }
}

fn start(args: &Args) -> Result<std::convert::Infallible, Error> {
    let policy = args.policy();
    let (name, rest) = args.command.split_first().ok_or(Error::NothingToDo)?;
    if policy.is_none() && args.cpus.is_none() && args.cpunodebind.is_none() && args.threads.is_none() {
        return Err(Error::NothingToDo);
    }
    let nodes = || Topology::read(Path::new("/")).ok().filter(|machine| machine.nodes_are_known);
    // Memory first: `exec` drops the pages that this process has already.
    if let Some(policy) = policy {
        memory::place(&policy, nodes().as_ref()).map_err(Error::Memory)?;
    }
    if let Some(list) = &args.cpunodebind {
        let cpus = memory::cpus_of(list, nodes().as_ref()).map_err(Error::Memory)?;
        stay_on("--cpunodebind", &cpus)?;
    }
    if let Some(text) = &args.cpus {
        stay_on("--cpus", &chosen("--cpus", text)?.into_iter().collect())?;
    }
    if let Some(text) = &args.threads {
        let cpus = chosen("--threads", text)?;
        stay_on("--threads", &cpus.iter().copied().collect())?;
        threads::prepare(name, &cpus).map_err(Error::Threads)?;
        stay_on("--threads", &cpus.first().copied().into_iter().collect())?;
    }
    let mut command = Command::new(name);
    command.args(rest);
    signals::restore_inherited(&mut command);
    Err(Error::Exec { name: name.clone(), error: command.exec() })
}

fn chosen(option: &'static str, text: &str) -> Result<Vec<u32>, Error> {
    select_here(text).map_err(|error| Error::Cpus { option, error })
}

fn stay_on(option: &'static str, cpus: &Bitmap) -> Result<(), Error> {
    pin::thread(cpus).map_err(|error| Error::Pin { option, error })
}

impl Args {
    /// Returns whether the program is this command, which names unknown variables itself.
    pub(crate) fn starts_largesse(&self) -> bool {
        self.command.first().is_some_and(|name| Path::new(name).file_name() == Some("largesse".as_ref()))
    }

    /// Returns the words of the command line with `-i NODES`, as numactl has it, joined to `--interleave=NODES`; `None`
    /// if they contain no such option. Without a node list, the word after `--interleave` is the program.
    pub(crate) fn with_nodes_joined(&self, words: &[OsString]) -> Option<Vec<OsString>> {
        let nodes = self.command.first()?.to_str().filter(|word| is_nodes(word))?;
        let place = words.len().checked_sub(self.command.len())?;
        let option = place
            .checked_sub(1)
            .filter(|&option| words[option] == "-i" || words[option] == "--interleave")?;
        let mut joined = words.to_vec();
        joined.splice(option..=place, [OsString::from(format!("--interleave={nodes}"))]);
        Some(joined)
    }

    fn policy(&self) -> Option<memory::Policy> {
        let bind = self.node.clone().map(memory::Policy::Bind);
        let interleave = self.interleave.clone().map(memory::Policy::Interleave);
        let preferred = self.preferred.map(memory::Policy::Preferred);
        bind.or(interleave).or(preferred).or(self.localalloc.then_some(memory::Policy::Local))
    }
}
