//! Compares programs on garbage-collected heaps by numbers of threads: those of Matsui and Sekiguchi (EusLisp, 1995),
//! with each way to share a heap and in other languages: `largesse bench gc`.
//!
//! # Picture
//! ```text
//!   definition ─► systems, built in a temporary directory ─► one thread: right? how many repetitions?
//!                                                    │
//!        system × threads, in turns, round by round ◄┘
//!          └─► outcome: gains, shares of collections ─► table | json | picture
//! ```
//! Knows how to start programs, and that their threads do equal work. Does not know languages, nor how they collect:
//! that is data in `benches/definitions/gc.toml`, and programs.
//! # Invariants
//! 1. A program with a wrong answer is not timed, and has no time.
//! 2. A gain compares two runs in the same round.

mod builder;
mod definition;
mod json;
mod outcome;
mod pauses;
mod picture;
mod rounds;
mod table;

use super::error::Error;
use super::machine::MachineFacts;
use super::stats::no_claim;
use super::{Args, json as common, place};
use builder::Builder;
use definition::{Definition, System};
use largesse_terminal::progress::Progress;
use largesse_terminal::say::say;
use largesse_terminal::table::Paper;
use outcome::GcOutcome;
use rounds::GcPlan;

/// Argument of `largesse bench` for this comparison.
pub(super) const NAME: &str = "gc";
/// Default number of runs of each system with each number of threads.
const RUNS: u32 = 5;
/// Default limit of a run, in seconds.
const CAP: u32 = 60;
/// Greatest number of threads, which is EusLisp's.
const MOST_THREADS: u32 = 64;

/// Runs the comparison and prints it. Returns whether everything ran and every answer is right.
pub(super) fn compare(args: &Args) -> Result<bool, Error> {
    let root = place::find(args.programs.as_deref())?;
    let definition = Definition::read(&root)?.only(&args.only)?;
    if args.list {
        definition.programs.iter().for_each(|program| say!("{:14} {}", program.name, program.title));
        definition.systems.iter().for_each(|system| say!("{:14} {}", system.name, system.title));
        return Ok(true);
    }
    let plan = GcPlan::of(&definition, args);
    let builder = Builder::open(&root).map_err(Error::Touch)?;
    let machine = MachineFacts::here(&root);
    if args.json {
        say!("{}", common::machine(&machine, args.scale));
    } else {
        say!("{}\n", machine.line());
    }
    let here = built(args, &definition, &builder);

    let chosen = definition.programs.iter().map(|program| {
        let systems: Vec<_> = here.iter().copied().filter(|system| system.has(program)).collect();
        (program, systems)
    });
    let chosen: Vec<_> = chosen.filter(|(_, systems)| !systems.is_empty()).collect();
    let progress = Progress::over(chosen.iter().map(|(_, systems)| plan.steps(systems.len())).sum());
    let mut outcomes = Vec::new();
    for (program, systems) in chosen {
        let lines = plan.run(program, &systems, &builder, &progress, |success| {
            if args.json {
                progress.aside(|| say!("{}", json::run(success)));
            }
        });
        let outcome = GcOutcome::of(program, &lines);
        progress.aside(|| show(args, &definition, &outcome));
        outcomes.push(outcome);
    }
    progress.finish();
    if !args.json {
        legend(&plan, &here, &outcomes);
    }
    if let Some(path) = &args.svg {
        let systems: Vec<_> = here.iter().map(|it| (it.name.as_str(), it.title.as_str())).collect();
        let picture = picture::draw(&machine.line(), &systems, &outcomes).map_err(Error::Touch)?;
        std::fs::write(path, picture).map_err(|why| Error::Touch(format!("{}: {why}", path.display())))?;
    }
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.failures.is_empty()))
}

/// Returns the systems that could be built; prints what to do about the others.
fn built<'a>(args: &Args, definition: &'a Definition, builder: &Builder) -> Vec<&'a System> {
    let mut here = Vec::new();
    for system in &definition.systems {
        match builder.build(system) {
            Ok(()) => here.push(system),
            Err(why) if args.json => say!("{}", common::absent(NAME, Some(&system.name), &why)),
            Err(why) => say!("{}: {why}", system.name),
        }
    }
    here
}

fn show(args: &Args, definition: &Definition, outcome: &GcOutcome<'_>) {
    if args.json {
        json::outcome(outcome, &definition.reference).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", table::show(outcome, &definition.reference, Paper::here()));
    }
}

fn legend(plan: &GcPlan<'_>, here: &[&System], outcomes: &[GcOutcome<'_>]) {
    say!("{}", table::LEGEND);
    for system in here {
        let mut rows = outcomes.iter().flat_map(|outcome| &outcome.rows);
        let about = rows.find(|row| row.system == system.name).map_or("", |row| &row.about);
        say!("{}: {}; {about}", system.name, system.title);
    }
    if let Some(words) = no_claim(plan.runs) {
        say!("{words}, good for a look.");
    }
}

/// Reads one of the numbers after `--threads`.
pub(super) fn threads(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(threads) if (1..=MOST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("numbers from 1 to {MOST_THREADS} with commas between: 1,2,4")),
    }
}
