//! `largesse run`: starts a program with its large blocks on large pages.
//!
//! # Picture
//! ```text
//!   options ─► settings ─► LARGESSE_* ─┐
//!   PROGRAM ─► program ─► elf          ├─► exec (this process becomes the program)
//!   library ─► preload ─► LD_PRELOAD ──┘
//!                 forecast: one warning on stderr for each request that will not be granted
//! ```
//! # Knows / does not know
//! Knows which programs can be served, and reports why others cannot before starting them. Does not know what the
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
mod unserved;

#[cfg(test)]
#[path = "../../../../os/machine/tests/common/root.rs"]
mod root;

pub(crate) use error::LaunchError;
use largesse_far::mpi::{self, Ranks};
use largesse_far::{Given, PASSWORD, environment};
use largesse_settings::SettingsReader;
use largesse_terminal::say::{complain, complain_lines};
use program::Executable;
use report::ReportTarget;
use settings::Settings;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Start a program with its large blocks on large pages.
///
/// The program replaces this command, so that its exit status and signals reach the caller. Largesse itself exits with
/// 2 (the command line is not understood), 125 (Largesse failed), 126 (the program was found but cannot be served) or
/// 127 (the program was not found).
#[derive(Debug, clap::Args)]
#[command(override_usage = "largesse run [OPTIONS] -- PROGRAM [ARGS]...")]
pub(crate) struct Args {
    /// Use this kind of page: auto, thp, hugetlb, hugetlb-1g, 64k
    #[arg(long, value_name = "KIND", allow_hyphen_values = true)]
    pages: Option<OsString>,
    /// Lock large blocks in memory, so that they are never swapped out
    #[arg(long)]
    lock: bool,
    /// Serve blocks of N KiB and more [default: 256]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    min_kb: Option<OsString>,
    /// Serve blocks up to N KiB [default: no limit]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    max_kb: Option<OsString>,
    /// Align the data that follow a header of N bytes, which the program puts at the start of each block
    /// [default: 48 under R, else 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, hide = true)]
    header: Option<OsString>,
    /// Align the data of large blocks to 64 bytes, or as the C library does (native)
    #[arg(long, value_name = "64|native", allow_hyphen_values = true, hide = true)]
    align: Option<OsString>,
    /// Place large blocks on NUMA node N [default: the node that first touches them]
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "interleave")]
    node: Option<OsString>,
    /// Spread large blocks over all NUMA nodes, page by page
    #[arg(long)]
    interleave: bool,
    /// Use Largesse in the programs that this one starts, too [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true)]
    children: Option<OsString>,
    /// Keep the program below SIZE (8G), or below the memory of its control group or the machine (auto): near the limit
    /// large blocks become far memory
    #[arg(
        long,
        value_name = "SIZE|auto",
        allow_hyphen_values = true,
        help_heading = "Far memory",
        conflicts_with = "local"
    )]
    limit: Option<OsString>,
    /// Use far memory: keep at most SIZE (4G, 512M), or PERCENT (50%) of the program's large blocks, in memory, and the
    /// rest of them in a store
    #[arg(long, value_name = "SIZE|PERCENT", allow_hyphen_values = true, help_heading = "Far memory")]
    local: Option<OsString>,
    /// Use this store for far memory: file:PATH (removed at exit), memory:, redis://HOST:PORT, mpi: (under mpirun), or
    /// agent:NAME [default: a file in $TMPDIR or /var/tmp]
    #[arg(long, value_name = "STORE", allow_hyphen_values = true, help_heading = "Far memory")]
    far: Option<OsString>,
    /// Transfer pages in units of SIZE: auto, or 4K, 8K and so on to 2M [default: auto]
    #[arg(long, value_name = "auto|SIZE", allow_hyphen_values = true, help_heading = "Far memory")]
    page_size: Option<OsString>,
    /// Prefetch pages of sequential and strided accesses [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true, help_heading = "Far memory")]
    prefetch: Option<OsString>,
    /// Put static arrays of the program and its shared libraries into far memory, too [default: on]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true, help_heading = "Far memory")]
    static_data: Option<OsString>,
    /// Serve blocks of 64 KiB or less from far memory, too [default: on, off with --min-kb]
    #[arg(long, value_name = "on|off", allow_hyphen_values = true, help_heading = "Far memory")]
    small_blocks: Option<OsString>,
    /// Handle page faults by: auto, events (userfaultfd; needs a permission), user-mode (userfaultfd; system calls are
    /// filtered), thread (SIGBUS in the faulting thread; filtered, too) [default: auto]
    #[arg(long, value_name = "ENGINE", allow_hyphen_values = true, help_heading = "Far memory")]
    fault_engine: Option<OsString>,
    /// Write to FILE.json, when the program ends, which pages it and the programs it started got; with far memory
    /// also a time line, drawn in FILE.svg. `-` is standard output
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
        Err(error) => {
            // Print first: some MPI launchers kill all processes once they are told.
            complain_lines!("largesse: {error}");
            idle.iter().for_each(Ranks::dismiss);
            error.exit_code()
        }
    }
}

/// Checks everything, then replaces this process by the program; returns only if that failed, with the MPI ranks to
/// dismiss in `idle`.
fn start(args: &Args, idle: &mut Option<Ranks>) -> Result<std::convert::Infallible, LaunchError> {
    let given = args.given();
    let mut settings = Settings::parse(&given, environment::get)?;
    let ranks = largesse_far::ranks(&settings.variables)?;
    if let Some(server) = ranks.as_ref().filter(|ranks| !ranks.is_first()) {
        server.serve().map_err(largesse_far::FarError::Ranks)?;
        std::process::exit(0);
    }
    let Ready { program, plan, foretold } = match Ready::check(args, &settings, ranks.is_some()) {
        Ok(ready) => ready,
        Err(error) => {
            *idle = ranks;
            return Err(error);
        }
    };
    largesse_far::warn_of_passwords(&given);
    match ranks {
        None => largesse_far::start_agent(&mut settings.variables)?,
        Some(ranks) => {
            largesse_far::set_store(
                &mut settings.variables,
                ranks.host().map_err(largesse_far::FarError::Ranks)?,
            );
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
    let (other, memory) = (plan.other_allocator, tunables::unlimited_memory(Path::new("/")));
    if let Some(value) = tunables::tunables(&settings, inherited.as_deref(), other, memory) {
        environment::set(tunables::VARIABLE, &value);
    }
    // An outer `largesse run --report` keeps its own watcher; this file is for ours.
    environment::remove("LARGESSE_REPORT");
    let mut folder = None;
    if let Some(target) = &settings.report {
        let temporary = environment::get("TMPDIR").filter(|it| !it.is_empty());
        let temporary = temporary.map_or_else(std::env::temp_dir, PathBuf::from);
        let made = report::watch(target, &temporary)
            .map_err(|error| LaunchError::Watcher { origin: settings.report_origin, error })?;
        environment::set("LARGESSE_REPORT_FOLDER", made.as_os_str());
        folder = Some(made);
    }
    let mut command = Command::new(&program.path);
    command.arg0(&args.command[0]).args(&args.command[1..]);
    signals::restore_inherited(&mut command);
    let error = LaunchError::exec(&program.path, &command.exec());
    // Without its folder the watcher writes no report.
    folder.iter().for_each(|folder| _ = std::fs::remove_dir_all(folder));
    Err(error)
}

/// A program that can be served, and how to preload the library into it.
struct Ready {
    program: Executable,
    plan: preload::Preload,
    /// Value of [`forecast::VARIABLE`]: names of causes separated by commas.
    foretold: String,
}

impl Ready {
    /// Checks the program, the library and the options. `ranks` says whether other MPI ranks are to hold the program's
    /// pages.
    fn check(args: &Args, settings: &Settings, ranks: bool) -> Result<Ready, LaunchError> {
        let root = Path::new("/");
        if let Some(ReportTarget::File(path)) = &settings.report {
            settings::report_can_be_written(settings.report_origin, path)?;
        }
        machine::node_exists(root, settings)?;

        let name = args.command.first().ok_or(LaunchError::NoProgram)?;
        let path = environment::get("PATH");
        let program = Executable::find(name, path.as_deref())?;
        let inspection = program.inspect(path.as_deref())?;
        inspection.mpi.filter(|_| ranks).map_or(Ok(()), Err)?;

        let library = library::find(environment::get("LARGESSE_LIBRARY"))?;
        let plan = preload::plan(&library, environment::get("LD_PRELOAD").as_deref())?;

        let forecast = forecast::lines(root, settings);
        let hints = environment::remarks(SettingsReader::Run).into_iter().chain(inspection.hints);
        for line in hints.chain(forecast.iter().map(|line| line.text.clone())) {
            complain!("largesse: {line}");
        }
        Ok(Ready { program, plan, foretold: forecast::foretold(&forecast) })
    }
}

/// Returns the path of the library `name` in the folder of `liblargesse.so`, which must define `symbol`.
pub(crate) fn companion(name: &str, symbol: &str) -> Result<PathBuf, LaunchError> {
    library::companion(&library::find(environment::get("LARGESSE_LIBRARY"))?, name, symbol)
}

/// Checks that a library can be preloaded into the program `name`, which is searched as `execvp` does.
pub(crate) fn served(name: &OsStr) -> Result<(), LaunchError> {
    let path = environment::get("PATH");
    Executable::find(name, path.as_deref())?.inspect(path.as_deref()).map(|_| ())
}

impl Args {
    /// Returns the options on the command line with the environment variables that they stand for.
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
        add("--limit", "LARGESSE_LIMIT", &self.limit);
        add("--local", "LARGESSE_LOCAL", &self.local);
        add("--far", "LARGESSE_FAR", &self.far);
        add("--page-size", "LARGESSE_PAGE_SIZE", &self.page_size);
        add("--prefetch", "LARGESSE_PREFETCH", &self.prefetch);
        add("--static-data", "LARGESSE_STATIC_DATA", &self.static_data);
        add("--small-blocks", "LARGESSE_SMALL_BLOCKS", &self.small_blocks);
        add("--fault-engine", "LARGESSE_FAULT_ENGINE", &self.fault_engine);
        add("--report", "LARGESSE_REPORT", &self.report);
        given
    }
}
