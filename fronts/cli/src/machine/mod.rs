//! `largesse machine`: shows the parts of this machine, and measures its memory.
//!
//! # Picture
//! ```text
//!   /sys below a root ─► snapshot ─┬─► text, tables
//!   the processor     ─►           ├─► one JSON object
//!   measure: bandwidth, ladder, ───┴─► picture
//!            cores
//! ```
//! # Knows / does not know
//! Knows how to read, measure within bounds and show a machine. Does not know how a heap uses the results.
//! # Invariants
//! 1. No setting of the system is changed; kinds of page that the system does not offer are reported.
//! 2. Impossible figures are marked.

mod measure;
mod measured;
mod options;
mod picture;
mod snapshot;
mod tables;
mod text;
mod tree;
mod words;

use largesse_terminal::progress::Progress;
use largesse_terminal::say::{complain, say};
use largesse_terminal::table::Paper;
use largesse_terminal::word;
use measure::Limits;
use measure::bandwidth;
use measure::cores;
use measure::ladder::{self, SIZES};
use measure::memory::Rung;
use measured::Measured;
use snapshot::{Live, MachineSnapshot};
use std::path::PathBuf;
use std::process::ExitCode;

/// Show this machine's packages, caches, NUMA nodes, page sizes, clocks and instruction sets.
///
/// --bandwidth and --latency measure its memory, which takes a minute on a small machine. Let nothing else run at the
/// same time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Measure write, read, copy and triad from each node to each node, then with 2, 4, 8 and more threads
    #[arg(long)]
    bandwidth: bool,
    /// Measure the time of an access on each kind of page, and of passing a cache line between processors
    #[arg(long)]
    latency: bool,
    /// Draw the machine and the measurements to FILE.svg
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Measure with this much memory, as 512M or 4G [default: 4G, or half of the available memory if that is less]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Begin no measurement after N seconds
    #[arg(long, value_name = "N", default_value_t = 300)]
    seconds: u64,
    /// Show the saved machine below this directory instead of this machine
    #[arg(long, value_name = "DIR", default_value = "/", conflicts_with_all = ["bandwidth", "latency"])]
    root: PathBuf,
}

pub(crate) fn main(args: &Args) -> ExitCode {
    match show(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain!("largesse machine: {why}");
            ExitCode::from(2)
        }
    }
}

fn show(args: &Args) -> Result<(), String> {
    let limits = options::limits(args.memory.as_deref(), args.seconds)?;
    let seen = MachineSnapshot::read(&args.root).map_err(|error| error.to_string())?;
    let measured = seen.live.as_ref().map(|live| measure(args, &seen, live, &limits)).unwrap_or_default();
    if let Some(path) = &args.svg {
        let drawn = picture::svg(&seen, &measured)?;
        std::fs::write(path, drawn).map_err(|error| format!("--svg {}: {error}", word(path)))?;
    }
    if args.json {
        let mut json = seen.json();
        json["bandwidth"] = serde_json::to_value(&measured.bandwidth).unwrap_or_default();
        json["latency"] = serde_json::to_value(&measured.ladder).unwrap_or_default();
        json["cores_ns"] = serde_json::to_value(&measured.cores).unwrap_or_default();
        say!("{}", serde_json::to_string_pretty(&json).unwrap_or_default());
        return Ok(());
    }
    let tables = [
        measured.bandwidth.as_ref().map(tables::bandwidth),
        measured.ladder.as_deref().map(tables::ladder),
        measured.cores.as_deref().map(tables::cores),
    ];
    let text = text::full(&seen) + &tables.into_iter().flatten().collect::<String>();
    say!("{}", Paper::here().page(text.trim_end()));
    Ok(())
}

/// Makes the requested measurements, and reports progress.
fn measure(args: &Args, seen: &MachineSnapshot, live: &Live, limits: &Limits) -> Measured {
    let plan = if args.bandwidth { bandwidth::plan(&seen.topology, live) } else { Vec::new() };
    let cpus = cores::chosen(&seen.topology, &live.pinned.iter().collect::<Vec<_>>());
    let pairs = cpus.len() * cpus.len().saturating_sub(1) / 2;
    let steps = plan.len() + if args.latency { SIZES.len() * Rung::ALL.len() + pairs } else { 0 };
    let progress = Progress::over(steps as u64);
    let mut step = |what: String| {
        progress.step();
        progress.at(what);
    };
    let mut measured = Measured::default();
    if args.bandwidth {
        measured.bandwidth = Some(bandwidth::measure(seen, live, &plan, limits, &mut step));
    }
    if args.latency {
        let free = |size| {
            seen.pages.pools.iter().find(|pool| pool.size == size).and_then(|pool| pool.free).unwrap_or(0)
        };
        // Cores first: they take the least time, and show how far apart a virtual machine's processors are.
        measured.cores = Some(cores::pairs(&live.counter, &cpus, limits, &mut step));
        measured.ladder = Some(ladder::climb(&live.counter, &free, limits, &mut step));
    }
    progress.finish();
    measured
}
