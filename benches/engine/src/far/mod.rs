//! Measures what a program loses with less local memory than it uses: `largesse bench far`.
//!
//! # Picture
//! ```text
//!   footprint: one run with everything here ─► cells: shares × page sizes
//!                                                 │
//!            stock, stock again, cell, cell, … ◄──┘  rounds, in turns
//!                         └─► outcome: medians over stock's ─► table (next to a published one) | json
//! ```
//! # Knows / does not know
//! Knows `largesse run --local --far --page-size` and the far memory in its report. Does not know how pages are
//! moved, or what a program computes.
//! # Invariants
//! 1. An answer that differs from stock's in a bit has no time.
//! 2. A run that was stopped has a lower bound, and counts as neither wrong nor measured.

mod decisions;
mod footprint;
mod json;
mod outcome;
mod plan;
mod rounds;
mod spec;
mod table;

use largesse_terminal::say::{counted, say};
use largesse_terminal::table::Paper;
use spec::MARKED;
pub(super) use spec::Spec;

use super::definition::Bench;
use super::error::Error;
use super::machine::MachineFacts;
use super::settings::Settings;
use super::stats::no_claim;
use super::{Args, json as common};
use largesse_terminal::progress::Progress;
use outcome::FarOutcome;
use plan::FarPlan;
use rounds::FarEvent;
use std::path::Path;

/// Argument of `largesse bench` for this comparison.
pub(super) const NAME: &str = "far";
/// Default number of runs of each cell.
const RUNS: u32 = 3;
/// Default limit of a run, in seconds.
const CAP: u32 = 60;

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(super) fn compare(
    args: &Args,
    root: &Path,
    benches: &[Bench],
    settings: &Settings,
) -> Result<bool, Error> {
    let benches: Vec<_> = benches.iter().map(|bench| varied(bench, args)).collect();
    let plans =
        benches.iter().map(|bench| FarPlan::of(bench, settings, args)).collect::<Result<Vec<_>, _>>()?;
    let machine = MachineFacts::here(root);
    if args.json {
        say!("{}", common::machine(&machine, args.scale));
    } else {
        say!("{}\n", machine.line());
    }
    let progress = Progress::over(plans.iter().map(FarPlan::steps).sum());
    let (mut good, mut compared) = (true, 0);
    for plan in &plans {
        let found = rounds::run(plan, settings, root, &progress, |event| tell(args, &progress, plan, event));
        let Some(found) = found else { continue };
        let outcome = FarOutcome::of(plan, &found);
        compared += 1;
        good &= outcome.failures.is_empty();
        progress.aside(|| show(args, plan, &outcome));
    }
    progress.finish();
    if !args.json && compared > 0 {
        legend(args);
    }
    Ok(good && compared > 0)
}

/// Returns the bench with the columns and rows of the command line.
fn varied(bench: &Bench, args: &Args) -> Bench {
    let mut bench = bench.clone();
    if let Some(spec) = &mut bench.far {
        let asked = |size: &String| size != MARKED || !spec.marked.is_empty();
        if let Some(sizes) = &args.page_sizes {
            spec.page_sizes = sizes.iter().filter(|&size| asked(size)).cloned().collect();
        }
        spec.local_percent = args.local.clone().unwrap_or_else(|| spec.local_percent.clone());
    }
    bench
}

/// Parses an element of `--page-sizes`, which becomes a row of the table: a size, `auto` or `marked`.
pub(super) fn page_size(text: &str) -> Result<String, String> {
    let size = if text == MARKED { Ok(None) } else { largesse_settings::page_size(text) };
    size.map(|_| text.to_owned()).map_err(|why| format!("{text} {why}, or {MARKED}"))
}

/// Prints an event of a running bench.
fn tell(args: &Args, progress: &Progress, plan: &FarPlan<'_>, event: &FarEvent<'_>) {
    let name = &plan.bench.name;
    progress.aside(|| match event {
        FarEvent::Skipped(why) if args.json => say!("{}", common::absent(name, None, why)),
        FarEvent::Skipped(why) => say!("{name}: skipped: {why}\n"),
        other if args.json => say!("{}", json::event(name, other)),
        _ => {}
    });
}

fn show(args: &Args, plan: &FarPlan<'_>, outcome: &FarOutcome<'_>) {
    if args.json {
        json::outcome(outcome).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", table::show(plan, outcome, Paper::here()));
    }
}

fn legend(args: &Args) {
    let (runs, cap) = (args.runs.unwrap_or(RUNS), args.cap.unwrap_or(CAP));
    say!(
        "Columns: local memory as a share of what the program touches. Rows: transfer sizes. Cells: the\n\
         median of {} in turns, over stock's (largest less smallest, over the median); 1x is as fast as stock.\n\
         `> Nx`: stopped after {cap} s, N times as long as a whole run of stock takes, its preparations included.\n\
         `worst to auto`: how much longer the worst size takes, or took until it was stopped.\n\
         `marked`: auto, of a program that marks its compute core; below, the decision at the end of each iteration.\n\
         `-`: less local memory than largesse can work with (1 MiB).",
        counted(runs, "run")
    );
    if let Some(words) = no_claim(runs as usize) {
        say!("{words}, good for a look.");
    }
}
