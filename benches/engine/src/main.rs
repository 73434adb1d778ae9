//! `largesse-bench`, which `largesse bench` executes: runs the comparisons.
//!
//! # Picture
//! ```text
//!   definitions ─► benches ─┐                       ┌─► verdict: right, to the bit?
//!   settings ─► contestants ┴─► rounds: warm, run ──┴─► stats ─► outcome ─► table | json
//! ```
//! `far` compares amounts of local memory and page sizes in the same way, `gc` numbers of threads, and `kernels` calls
//! functions instead of starting programs; see there.
//! # Knows / does not know
//! Knows how to start programs and how to compare what they say. Does not know what a program does:
//! that, and what it must answer, is data in `benches/`.
//! # Invariants
//! 1. Nothing about time is said of an answer that was not found right.
//! 2. Contestants take turns, each is first equally often, and the same amount of memory is touched
//!    and freed before every run, and again right before the clock starts (see `warm`).
#![deny(clippy::print_stdout, reason = "`say!` lives when the reader of the pipe does not")]

mod definition;
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
mod scratch;
mod settings;
mod stats;
mod table;
mod trouble;
mod verdict;
mod warm;

use clap::Parser;
use definition::Bench;
use largesse_terminal::progress::Progress;
use largesse_terminal::say::{self, complain, counted, say};
use largesse_terminal::table::Paper;
use machine::Machine;
use outcome::Outcome;
use rounds::{Plan, RUNS, Told};
use settings::Settings;
use stats::no_claim;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use trouble::Trouble;

/// Compare programs with and without Largesse.
///
/// Every program is run in turns under each setting; ratios are of medians, to the C library's
/// malloc. `r`: R under Largesse and other allocators. `far`: programs with less local memory than
/// they use, by its share and the page size. `kernels`: sums and products at every length, beside OpenBLAS and
/// plain loops, as per cent of what each cache level allows. `gc`: programs on garbage-collected heaps by threads, under each
/// `largesse lisp --sync`, beside EusLisp and other languages that are installed. Exit status: 0 when everything ran and
/// every answer agrees, 1 when not, 2 for a wrong option.
#[derive(Debug, Parser)]
#[command(name = "largesse-bench", bin_name = "largesse bench", version)]
struct Args {
    /// Which comparison: r, far, gc, kernels; or `touch`: touch and free --touch MiB, and nothing else
    name: String,
    /// Print one JSON object a line, every raw sample among them
    #[arg(long)]
    json: bool,
    /// Compare with other allocators too, those that are installed
    #[arg(long)]
    peers: bool,
    /// Runs of each program under each setting [default: 5; far: 3; kernels: 15]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Repetitions of each test within a run; its time is their mean [default: 1]. far: iterations,
    /// whose time is their sum [default: the program's own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: Option<u32>,
    /// Share of the data: answers are known for 1, 0.25 and 0.01. gc: of the repetitions
    #[arg(long, value_name = "F", default_value = "1", value_parser = share)]
    scale: f64,
    /// Only this bench, group or single test (BENCH/TEST); gc: program or system; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Print the benches and their tests, and run nothing
    #[arg(long)]
    list: bool,
    /// Memory to touch and free before every run and every test, in MiB, or a size such as 4G [default: what the
    /// program needs, and at most half of what is available]
    #[arg(long, value_name = "MIB", value_parser = touch)]
    touch: Option<u64>,
    /// Folder that holds `definitions` and `programs`
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Kill a run after so many seconds: the table then says what it is above [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = "far, gc")]
    cap: Option<u32>,
    /// Where far pages are: memory:, file:PATH or redis://HOST:PORT [default: memory:]
    #[arg(long, value_name = "STORE", value_parser = store, help_heading = "far")]
    store: Option<String>,
    /// Columns of the table: per cent of what the program touches that are local [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "far")]
    local: Option<Vec<u8>>,
    /// Rows of the table: what `largesse run --page-size` takes [default: the bench's own]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = far::page_size, help_heading = "far")]
    page_sizes: Option<Vec<String>>,
    /// Who serves far pages, as `largesse run --fault-engine` takes it [default: auto]
    #[arg(long, value_name = "ENGINE", help_heading = "far")]
    fault_engine: Option<String>,
    /// Draw what was measured
    #[arg(long, value_name = "FILE", help_heading = "gc, kernels")]
    svg: Option<PathBuf>,
    /// Numbers of threads, 1 always among them [default: 1,2,4,8,16, as far as twice the processors]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = gc::threads, help_heading = "gc")]
    threads: Option<Vec<u32>>,
}

fn main() -> ExitCode {
    say::end(match compare(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(trouble) => {
            complain!("largesse bench: {trouble}");
            ExitCode::from(2)
        }
    })
}

/// Runs what was asked for and prints it. Whether everything ran and every answer agrees.
fn compare(args: &Args) -> Result<bool, Trouble> {
    if args.name == warm::NAME {
        return warm::touch_mib(args.touch.unwrap_or(0)).map(|()| true).map_err(Trouble::Touch);
    }
    if let Some(trouble) = misplaced(args) {
        return Err(trouble);
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
        benches.iter().map(|bench| Plan::of(bench, &settings, args)).collect::<Result<Vec<_>, _>>()?;

    let machine = Machine::here(&root);
    if args.json {
        say!("{}", json::machine(&machine, args.scale));
    } else {
        say!("{}\n", machine.line());
    }
    let progress = Progress::over(plans.iter().map(Plan::steps).sum());
    let (mut good, mut compared) = (true, 0);
    let mut peers = BTreeMap::new();
    for plan in plans {
        peers.extend(plan.peers());
        let outcome =
            plan.run(&settings, &root, &progress, |told| tell(args, &progress, &plan.bench.name, told));
        let Some(outcome) = outcome else { continue };
        compared += 1;
        good &= outcome.troubles.is_empty();
        progress.aside(|| show(args, &outcome));
    }
    progress.finish();
    if !args.json {
        legend(args, &peers);
    }
    Ok(good && compared > 0)
}

/// An option that another comparison takes.
fn misplaced(args: &Args) -> Option<Trouble> {
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
    wrong.next().map(|(option, _, of)| Trouble::Option { option, of })
}

/// What happens while a bench runs.
fn tell(args: &Args, progress: &Progress, bench: &str, told: &Told<'_>) {
    progress.aside(|| match told {
        Told::Run { contestant, round, run } if args.json => {
            say!("{}", json::run(bench, contestant, *round, run));
        }
        Told::Run { .. } => {}
        Told::Absent { setting, why } if args.json => say!("{}", json::absent(bench, *setting, why)),
        Told::Absent { setting: Some(setting), why } => say!("{bench}: {setting}: {why}"),
        Told::Absent { setting: None, why } => say!("{bench}: skipped: {why}\n"),
    });
}

fn show(args: &Args, outcome: &Outcome<'_>) {
    if args.json {
        json::outcome(outcome).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", table::show(outcome, args.scale, Paper::here()));
    }
}

/// Everything in a bench, by the names that `--only` takes.
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

/// Reads `--touch`, in MiB.
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
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Ok(text.to_owned()),
        // It will be an argument of other programs.
        _ if largesse_far::has_password(text) => {
            Err("no password in the address: set LARGESSE_REDIS_PASSWORD".into())
        }
        _ if largesse_far::is_agents(text) => Ok(text.to_owned()),
        _ => Err(format!("file:PATH, {}", largesse_far::accepted())),
    }
}
