//! `largesse run`: Start a program with its large blocks on large pages.
//!
//! # Picture
//! ```text
//!   options ─► settings ─► LARGESSE_* ─┐
//!   PROGRAM ─► program ─► elf          ├─► exec (this process becomes the program)
//!   library ─► preload ─► LD_PRELOAD ──┘
//!                 forecast: what will not be granted, one line each on stderr
//! ```
//! # Knows / does not know
//! Knows which programs can be served, and tells why before they start. Does not know what the
//! library does once it is loaded.
//! # Invariants
//! 1. The program is executed in place: its exit status, signals and process number are its own, also with `--report`.
//! 2. A program that cannot be served is not started.

mod elf;
mod error;
mod forecast;
mod library;
mod machine;
mod preload;
mod program;
mod report;
mod settings;
pub(crate) mod signals;
mod tunables;

use crate::say::complain;
use largesse_far::mpi::{self, Ranks};
use largesse_far::{Error, Given, PASSWORD, environment};
use program::Program;
use report::Target;
use settings::Settings;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
pub(crate) use error::Trouble;

/// Start a program with its large blocks on large pages.
///
/// The program is executed in place: exit status and signals are its own. Largesse itself exits
/// with 2 (the command line is not understood), 125 (Largesse failed), 126 (the program was found
/// but cannot be served) or 127 (the program was not found).
#[derive(Debug, clap::Args)]
#[command(override_usage = "largesse run [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct Args {
    /// Kind of page: auto, thp, hugetlb, hugetlb-1g, 64k
    #[arg(long, value_name = "KIND", allow_hyphen_values = true)]
    pages: Option<OsString>,
    /// Keep large blocks in memory: they are never swapped out
    #[arg(long)]
    lock: bool,
    /// Smallest block taken, in KiB [default: 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    min_kb: Option<OsString>,
    /// Largest block taken, in KiB [default: no limit]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_kb: Option<OsString>,
    /// Bytes the caller keeps before its data: the data, not the header, are aligned to 64
    /// [default: 48 under R, else 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide = true)]
    header: Option<OsString>,
    /// 64: data of large blocks start at a multiple of 64; native: the C library's offsets
    #[arg(long, value_name = "64|native", allow_hyphen_values = true, hide = true)]
    align: Option<OsString>,
    /// Place large blocks on NUMA node N [default: where they are first touched]
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "interleave")]
    node: Option<OsString>,
    /// Spread large blocks over all NUMA nodes, page by page
    #[arg(long)]
    interleave: bool,
    /// Whether programs started by this one are served too [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true)]
    children: Option<OsString>,
    /// Far memory: keep at most so much of the program's large blocks in memory, as 4G, 512M or 50%
    /// of what it has; the rest is in a store
    #[arg(long, value_name = "SIZE|PERCENT", allow_hyphen_values = true, help_heading = "Far memory")]
    local: Option<OsString>,
    /// The store: file:PATH (removed at exit), memory:, redis://HOST:PORT, mpi: (under mpirun), or agent:NAME [default: a file in $TMPDIR or /var/tmp]
    #[arg(long, value_name = "STORE", allow_hyphen_values = true, help_heading = "Far memory")]
    far: Option<OsString>,
    /// Bytes that move together: auto, or 4K, 8K … 2M [default: auto]
    #[arg(long, value_name = "auto|SIZE", allow_hyphen_values = true, help_heading = "Far memory")]
    page_size: Option<OsString>,
    /// Whether pages are fetched ahead of faults that are foreseen [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true, help_heading = "Far memory")]
    prefetch: Option<OsString>,
    /// Whether the program's own static arrays (data and bss) are far too [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true, help_heading = "Far memory")]
    static_data: Option<OsString>,
    /// Who serves far pages: auto, events (needs a right), user-mode (system calls are filtered), thread
    /// (who meets a page fetches it; filtered, too) [default: auto]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true, help_heading = "Far memory")]
    fault_engine: Option<OsString>,
    /// Write what the program and the programs that it started got to FILE.json when it ends; with far memory
    /// also over time, and as a picture in FILE.svg. `-` is standard output
    #[arg(long, value_name = "FILE.json", allow_hyphen_values = true)]
    report: Option<OsString>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    let mut idle = None;
    match start(args, &mut idle) {
        Ok(never) => match never {},
        Err(trouble) => {
            // Said before the launcher hears of it: some launchers end everything at once.
            complain!("largesse: {trouble}");
            idle.iter().for_each(Ranks::dismiss);
            trouble.exit_code()
        }
    }
}

/// Checks everything, then becomes the program; returns only when that was not possible. `idle`: the ranks that
/// wait for work then.
fn start(args: &Args, idle: &mut Option<Ranks>) -> Result<std::convert::Infallible, Trouble> {
    let given = args.given();
    let mut settings = Settings::parse(&given, environment::get)?;
    let ranks = largesse_far::ranks(&settings.variables)?;
    if let Some(server) = ranks.as_ref().filter(|ranks| !ranks.is_first()) {
        server.serve().map_err(Error::Ranks)?;
        std::process::exit(0);
    }
    let Ready { program, plan, foretold } = match Ready::check(args, &settings, ranks.is_some()) {
        Ok(ready) => ready,
        Err(trouble) => {
            *idle = ranks;
            return Err(trouble);
        }
    };
    largesse_far::warn_of_passwords(&given);
    match ranks {
        None => largesse_far::start_agent(&mut settings.variables)?,
        Some(ranks) => {
            largesse_far::set_store(&mut settings.variables, ranks.host().map_err(Error::Ranks)?);
            environment::remove_all(&mpi::VARIABLES);
        }
    }
    environment::remove(PASSWORD);
    environment::set("LD_PRELOAD", &plan.value);
    if foretold.is_empty() {
        environment::remove(forecast::VARIABLE);
    } else {
        environment::set(forecast::VARIABLE, foretold.as_ref());
    }
    environment::set("LARGESSE_PID", std::process::id().to_string().as_ref());
    for (variable, value) in &settings.variables {
        environment::set(variable, value);
    }
    let inherited = environment::get(tunables::VARIABLE);
    let (other, memory) = (plan.other_allocator, tunables::memory(Path::new("/")));
    if let Some(value) = tunables::tunables(&settings, inherited.as_deref(), other, memory) {
        environment::set(tunables::VARIABLE, &value);
    }
    // What an outer `largesse run --report` asked for goes on; this file is ours alone.
    environment::remove("LARGESSE_REPORT");
    let mut folder = None;
    if let Some(target) = &settings.report {
        let temporary = environment::get("TMPDIR").filter(|it| !it.is_empty());
        let temporary = temporary.map_or_else(std::env::temp_dir, PathBuf::from);
        let made = report::watch(target, &temporary).map_err(Trouble::Watcher)?;
        environment::set("LARGESSE_REPORT_FOLDER", made.as_os_str());
        folder = Some(made);
    }
    let mut command = Command::new(&program.path);
    command.arg0(&args.command[0]).args(&args.command[1..]);
    signals::restore_inherited(&mut command);
    let trouble = Trouble::exec(&program.path, &command.exec());
    // The watcher has nothing to report then.
    folder.iter().for_each(|folder| _ = std::fs::remove_dir_all(folder));
    Err(trouble)
}

/// A program that can be served, and how the library gets into it.
struct Ready {
    program: Program,
    plan: preload::Plan,
    /// The value of [`forecast::VARIABLE`].
    foretold: String,
}

impl Ready {
    /// `ranks`: its pages are to be at other ranks.
    fn check(args: &Args, settings: &Settings, ranks: bool) -> Result<Ready, Trouble> {
        let root = Path::new("/");
        if let Some(Target::File(path)) = &settings.report {
            settings::report_can_be_written(path)?;
        }
        machine::node_exists(root, settings)?;

        let name = args.command.first().ok_or(Trouble::NoProgram)?;
        let path = environment::get("PATH");
        let program = Program::find(name, path.as_deref())?;
        let inspection = program.inspect(path.as_deref())?;
        inspection.mpi.filter(|_| ranks).map_or(Ok(()), Err)?;

        let library = library::find(environment::get("LARGESSE_LIBRARY"))?;
        let plan = preload::plan(&library, environment::get("LD_PRELOAD").as_deref())?;

        let forecast = forecast::lines(root, settings);
        let hints = environment::remarks().into_iter().chain(inspection.hints);
        for line in hints.chain(forecast.iter().map(|line| line.text.clone())) {
            complain!("largesse: {line}");
        }
        Ok(Ready { program, plan, foretold: forecast::foretold(&forecast) })
    }
}

/// Returns the library `name` beside `liblargesse.so`; it is known by a `symbol` that it defines.
pub(crate) fn companion(name: &str, symbol: &str) -> Result<PathBuf, Trouble> {
    library::companion(&library::find(environment::get("LARGESSE_LIBRARY"))?, name, symbol)
}

/// Checks that a library can be preloaded into the program `name`, which is looked for as `execvp` does.
pub(crate) fn served(name: &OsStr) -> Result<(), Trouble> {
    let path = environment::get("PATH");
    Program::find(name, path.as_deref())?.inspect(path.as_deref()).map(|_| ())
}

impl Args {
    /// The options that were given, as the variables they stand for.
    fn given(&self) -> Vec<Given> {
        let mut given = Vec::new();
        let mut add = |option, variable, value: &Option<OsString>| {
            if let Some(value) = value {
                given.push(Given { option, variable, value: value.clone() });
            }
        };
        add("--pages", "LARGESSE_PAGES", &self.pages);
        add("--lock", "LARGESSE_LOCK", &self.lock.then(|| "1".into()));
        add("--min-kb", "LARGESSE_MIN_KB", &self.min_kb);
        add("--max-kb", "LARGESSE_MAX_KB", &self.max_kb);
        add("--header", "LARGESSE_HEADER", &self.header);
        add("--align", "LARGESSE_ALIGN", &self.align);
        add("--node", "LARGESSE_NODE", &self.node);
        add("--interleave", "LARGESSE_NODE", &self.interleave.then(|| "interleave".into()));
        add("--children", "LARGESSE_CHILDREN", &self.children);
        add("--local", "LARGESSE_LOCAL", &self.local);
        add("--far", "LARGESSE_FAR", &self.far);
        add("--page-size", "LARGESSE_PAGE_SIZE", &self.page_size);
        add("--prefetch", "LARGESSE_PREFETCH", &self.prefetch);
        add("--static-data", "LARGESSE_STATIC_DATA", &self.static_data);
        add("--fault-engine", "LARGESSE_FAULT_ENGINE", &self.fault_engine);
        add("--report", "LARGESSE_REPORT", &self.report);
        given
    }
}
