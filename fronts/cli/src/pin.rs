//! `largesse pin`: Start a program on chosen processors and NUMA nodes.
//!
//! # Picture
//! ```text
//!   --cpus ─────────────────────────► pin this thread      ─┐
//!   --node, --interleave, --preferred ─► its memory policy  ─┴─► exec (this process becomes the program)
//! ```
//! # Knows / does not know
//! Knows which processors and nodes there are. Needs no library: any program can be started, static ones too.
//! # Invariants
//! 1. A placement that is not granted in full is an error, and the program is not started.

use crate::run::signals;
use largesse_machine::topology::{NoSuchNode, Unreadable};
use largesse_machine::{Bitmap, NotAList, Topology, pin};
use largesse_pages::{MapError, Placement, placement};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Start a program on chosen processors, and its memory on chosen NUMA nodes.
///
/// The program is executed in place: exit status and signals are its own. Largesse itself exits with 2 (a processor or
/// a node that there is not, or that may not be used), 126 (the program cannot be executed) or 127 (there is none).
#[derive(Debug, clap::Args)]
#[command(override_usage = "largesse pin [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct Args {
    /// Processors to run on, as 0-3,8
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    cpus: Option<String>,
    /// Memory on NUMA node N and nowhere else
    #[arg(long, value_name = "N", conflicts_with_all = ["interleave", "preferred"])]
    node: Option<u32>,
    /// Memory over all NUMA nodes, page by page
    #[arg(long, conflicts_with = "preferred")]
    interleave: bool,
    /// Memory on NUMA node N while it has room
    #[arg(long, value_name = "N")]
    preferred: Option<u32>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

/// Why the program was not started.
#[derive(Debug)]
enum Trouble {
    Nothing,
    List(NotAList),
    Cpus(pin::PinError),
    Topology(Unreadable),
    Node(NoSuchNode),
    NotPermitted { node: u32, nodes: Bitmap },
    Placement(MapError),
    Exec { name: OsString, error: io::Error },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Nothing => {
                write!(f, "nothing to do: give --cpus LIST, --node N, --interleave or --preferred N")
            }
            Trouble::List(error) => write!(f, "--cpus: {error}"),
            Trouble::Cpus(error) => write!(f, "--cpus: {error}"),
            Trouble::Topology(error) => error.fmt(f),
            Trouble::Node(error) => error.fmt(f),
            Trouble::NotPermitted { node, nodes } => write!(
                f,
                "this process may not have memory on node {node}: its control group (cpuset) permits {nodes}"
            ),
            Trouble::Placement(error) if matches!(error.errno, libc::EPERM | libc::ENOSYS) => write!(
                f,
                "memory cannot be placed: a container's filter of system calls (seccomp) forbids set_mempolicy"
            ),
            Trouble::Placement(error) => {
                write!(f, "memory cannot be placed: {}", io::Error::from_raw_os_error(error.errno))
            }
            Trouble::Exec { name, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "{}: not found", name.to_string_lossy())
            }
            Trouble::Exec { name, error } => {
                write!(f, "{} was not started: {error}", name.to_string_lossy())
            }
        }
    }
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let Err(trouble) = start(args);
    eprintln!("largesse: {trouble}");
    ExitCode::from(match &trouble {
        Trouble::Exec { error, .. } if error.kind() == io::ErrorKind::NotFound => 127,
        Trouble::Exec { .. } => 126,
        _ => 2,
    })
}

fn start(args: &Args) -> Result<std::convert::Infallible, Trouble> {
    let wanted = args.placement();
    if args.cpus.is_none() && wanted.is_none() {
        return Err(Trouble::Nothing);
    }
    // Memory first: what a topology is read into is not the program's.
    if let Some(wanted) = wanted {
        place(wanted)?;
    }
    if let Some(cpus) = &args.cpus {
        pin::thread(&cpus.parse().map_err(Trouble::List)?).map_err(Trouble::Cpus)?;
    }
    let (name, rest) = args.command.split_first().ok_or(Trouble::Nothing)?;
    let mut command = Command::new(name);
    command.args(rest);
    signals::restore_inherited(&mut command);
    Err(Trouble::Exec { name: name.clone(), error: command.exec() })
}

fn place(wanted: Placement) -> Result<(), Trouble> {
    let root = Path::new("/");
    let here = Topology::read(root).map_err(Trouble::Topology)?;
    let permitted = pin::permitted_nodes(root).unwrap_or_else(|| here.nodes_with_memory());
    match wanted {
        Placement::Node(node) | Placement::Preferred(node) => {
            here.node(node).map_err(Trouble::Node)?;
            if !permitted.contains(node) {
                return Err(Trouble::NotPermitted { node, nodes: permitted });
            }
        }
        Placement::Interleave => {
            let nodes = here.nodes_with_memory().and(&permitted);
            if nodes.len() == 1 {
                eprintln!("largesse: --interleave changes nothing: there is node {nodes} only");
            }
        }
        Placement::FirstTouch => {}
    }
    placement::place_thread(wanted).map_err(Trouble::Placement)
}

impl Args {
    fn placement(&self) -> Option<Placement> {
        let interleave = self.interleave.then_some(Placement::Interleave);
        let node = self.node.map(Placement::Node);
        node.or(interleave).or(self.preferred.map(Placement::Preferred))
    }
}
