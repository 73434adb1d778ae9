//! Runs the comparisons of `largesse bench`, which executes this program.
//!
//! # Picture
//! ```text
//!   definitions ─► benches ─┐                       ┌─► verdict: right, to the bit?
//!   settings ─► contestants ┴─► rounds: warm, run ──┴─► stats ─► outcome ─► table | json
//! ```
//! `far` compares amounts of local memory and page sizes in the same way, `gc` compares numbers of threads, and
//! `kernels` calls functions instead of starting programs; their modules have pictures of their own.
//! # Knows / does not know
//! Knows how to start programs and how to compare their results. Does not know what a program computes: that, and the
//! expected answers, are data in `benches/`.
//! # Invariants
//! 1. No time is printed of an answer that was not found right.
//! 2. Contestants take turns, each is first equally often, and the same amount of memory is touched
//!    and freed before every run, and again right before the clock starts (see `warm`).
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod definition;
mod error;
mod far;
mod gc;
mod json;
mod kernels;
mod machine;
mod options;
mod outcome;
mod place;
mod rounds;
mod runner;
mod settings;
mod stats;
mod table;
mod temp_dir;
mod verdict;
mod warm;

use clap::Parser;
use definition::Bench;
use error::Error;
use largesse_settings::StoreName;
use largesse_terminal::progress::Progress;
use largesse_terminal::say::{self, complain, counted, say};
use largesse_terminal::table::Paper;
use machine::MachineFacts;
use outcome::Outcome;
use rounds::{BenchPlan, Event, RUNS};
use settings::Settings;
use stats::no_claim;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare programs with and without Largesse.
///
/// Programs run in turns under each setting; ratios are of medians, to the C library's malloc. `r`: R under Largesse
/// and other allocators. `far`: programs with less local memory than they use, by its share and the page size.
/// `kernels`: sums and products at every length, compared with OpenBLAS and plain loops, as per cent of each cache
/// level's limit. `gc`: programs on garbage-collected heaps by threads, under each `largesse lisp --sync`, and in
/// EusLisp and other installed languages. Exit status: 0 when everything ran and every answer agrees, 1 when not, 2
/// for a wrong option.
#[derive(Debug, Parser)]
#[command(name = "largesse-bench", bin_name = "largesse bench", version)]
struct Args {
    /// Comparison to run: r, far, gc, kernels; or `touch`: only touch and free --touch MiB
    name: String,
    /// Print one JSON object a line, raw samples included
    #[arg(long)]
    json: bool,
    /// Compare with other installed allocators, too
    #[arg(long)]
    peers: bool,
    /// Run each program this many times under each setting [default: 5; far: 3; kernels: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Repeat each test this often within a run; its time is their mean [default: 1]. far: iterate this often; the
    /// time is their sum [default: the program's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: Option<u32>,
    /// Use this share of the data; answers are known for 1, 0.25 and 0.01. gc: share of the repetitions
    #[arg(long, value_name = "F", default_value = "1", value_parser = share)]
    scale: f64,
    /// Run only this bench, group or single test (BENCH/TEST); gc: program or system; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the benches and their tests, and run none
    #[arg(long)]
    list: bool,
    /// Touch and free this much memory before every run and every test, in MiB, or a size such as 4G [default: the
    /// memory that the program needs, and at most half of the available memory]
    #[arg(long, value_name = "MIB", value_parser = touch)]
    touch: Option<u64>,
    /// Read `definitions` and `programs` from this folder
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Stop a run after this many seconds; the table then shows a lower bound [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "far, gc")]
    cap: Option<u32>,
    /// Keep far pages in this store: memory:, file:PATH or redis://HOST:PORT [default: memory:]
    #[arg(long, value_name = "STORE", value_parser = store, help_heading = "far")]
    store: Option<String>,
    /// Keep these percentages of the touched memory local, one column each [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "far")]
    local: Option<Vec<u8>>,
    /// Use these page sizes, one row each, as `largesse run --page-size` takes them [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = far::page_size, help_heading = "far")]
    page_sizes: Option<Vec<String>>,
    /// Handle faults with this engine, as `largesse run --fault-engine` takes it [default: auto]
    #[arg(long, value_name = "ENGINE", help_heading = "far")]
    fault_engine: Option<String>,
    /// Draw the measurements as a picture in this file
    #[arg(long, value_name = "FILE", help_heading = "gc, kernels")]
    svg: Option<PathBuf>,
    /// Run with these numbers of threads, and with 1 [default: 1,2,4,8,16, up to twice the processors]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = gc::threads, help_heading = "gc")]
    threads: Option<Vec<u32>>,
}

fn main() -> ExitCode {
    say::end(match compare(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            complain!("largesse bench: {error}");
            ExitCode::from(2)
        }
    })
}

/// Runs the chosen comparison and prints it. Returns whether everything ran and every answer agrees.
fn compare(args: &Args) -> Result<bool, Error> {
    if args.name == warm::NAME {
        return warm::touch_mib(args.touch.unwrap_or(0)).map(|()| true).map_err(Error::Touch);
    }
    if let Some(error) = misplaced(args) {
        return Err(error);
    }
    if args.name == kernels::NAME {
        return kernels::compare(args);
    }
    if args.name == gc::NAME {
        return gc::compare(args);
    }
    let root = place::find(args.programs.as_deref())?;
    let benches = definition::choose(definition::read_all(&root)?, &args.name, &args.only)?;
    let settings = Settings::read(&root)?;
    if args.list {
        benches.iter().for_each(list);
        return Ok(true);
    }
    if args.name == far::NAME {
        return far::compare(args, &root, &benches, &settings);
    }
    let plans =
        benches.iter().map(|bench| BenchPlan::of(bench, &settings, args)).collect::<Result<Vec<_>, _>>()?;

    let machine = MachineFacts::here(&root);
    if args.json {
        say!("{}", json::machine(&machine, args.scale));
    } else {
        say!("{}\n", machine.line());
    }
    let progress = Progress::over(plans.iter().map(BenchPlan::steps).sum());
    let (mut good, mut compared) = (true, 0);
    let mut peers = BTreeMap::new();
    for plan in plans {
        peers.extend(plan.peers());
        let outcome =
            plan.run(&settings, &root, &progress, |event| tell(args, &progress, &plan.bench.name, event));
        let Some(outcome) = outcome else { continue };
        compared += 1;
        good &= outcome.failures.is_empty();
        progress.aside(|| show(args, &outcome));
    }
    progress.finish();
    if !args.json {
        legend(args, &peers);
    }
    Ok(good && compared > 0)
}

/// Returns the error for an option that belongs to another comparison.
fn misplaced(args: &Args) -> Option<Error> {
    const R: &str = "r";
    let options: [(_, _, &[_]); 10] = [
        ("--cap", args.cap.is_some(), &[far::NAME, gc::NAME]),
        ("--fault-engine", args.fault_engine.is_some(), &[far::NAME]),
        ("--local", args.local.is_some(), &[far::NAME]),
        ("--page-sizes", args.page_sizes.is_some(), &[far::NAME]),
        ("--peers", args.peers, &[R]),
        ("--store", args.store.is_some(), &[far::NAME]),
        ("--svg", args.svg.is_some(), &[gc::NAME, kernels::NAME]),
        ("--threads", args.threads.is_some(), &[gc::NAME]),
        ("--times", args.times.is_some(), &[R, far::NAME]),
        ("--touch", args.touch.is_some(), &[R, far::NAME, gc::NAME]),
    ];
    let known = [R, far::NAME, gc::NAME, kernels::NAME].contains(&&*args.name);
    let mut wrong =
        options.into_iter().filter(|(_, given, of)| known && *given && !of.contains(&&*args.name));
    wrong.next().map(|(option, _, of)| Error::Option { option, of })
}

/// Prints an event of a running bench.
fn tell(args: &Args, progress: &Progress, bench: &str, event: &Event<'_>) {
    progress.aside(|| match event {
        Event::Run { contestant, round, run } if args.json => {
            say!("{}", json::run(bench, contestant, *round, run));
        }
        Event::Run { .. } => {}
        Event::Absent { setting, why } if args.json => say!("{}", json::absent(bench, *setting, why)),
        Event::Absent { setting: Some(setting), why } => say!("{bench}: {setting}: {why}"),
        Event::Absent { setting: None, why } => say!("{bench}: skipped: {why}\n"),
    });
}

fn show(args: &Args, outcome: &Outcome<'_>) {
    if args.json {
        json::outcome(outcome).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", table::show(outcome, args.scale, Paper::here()));
    }
}

/// Prints a bench and its tests, by the names that `--only` takes.
fn list(bench: &Bench) {
    let when = if bench.only_by_name { "; runs only when named" } else { "" };
    say!("{}: {} (group {}{when})", bench.name, bench.title, bench.group);
    for test in &bench.tests {
        say!("  {:24} {}", format!("{}/{}", bench.name, test.name), test.title);
    }
}

fn legend(args: &Args, peers: &BTreeMap<&str, &str>) {
    let runs = args.runs.unwrap_or(RUNS);
    say!(
        "Medians of {} in turns; (largest less smallest, over the median). Columns after `noise` are ratios to\n\
         stock: below 1 is better. Noise: stock against itself, run in the same rounds; a difference within it is none.",
        counted(runs, "run")
    );
    peers.iter().for_each(|(name, title)| say!("{name}: {title}."));
    if let Some(words) = no_claim(runs as usize) {
        say!("{words}, good for a look.");
    }
}

/// Reads `--touch` and returns it in MiB.
fn touch(text: &str) -> Result<u64, String> {
    let bytes = largesse_settings::touch(text).map_err(|why| format!("{text} {why}"))?;
    Ok(bytes as u64 >> 20)
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if share > 0.0 && share <= 16.0 => Ok(share),
        _ => Err("a number above 0 and up to 16, such as 0.25".into()),
    }
}

fn store(text: &str) -> Result<String, String> {
    match StoreName::parse(text) {
        Some(StoreName::File(_)) => Ok(text.to_owned()),
        // The name becomes an argument of other programs, which all users can read.
        _ if largesse_far::has_password(text) => {
            Err("no password in the address: set LARGESSE_REDIS_PASSWORD".into())
        }
        _ if largesse_far::is_agents(text) => Ok(text.to_owned()),
        _ => Err(format!("file:PATH, {}", largesse_far::ACCEPTED)),
    }
}
