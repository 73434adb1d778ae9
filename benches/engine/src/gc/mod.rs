//! `largesse bench gc`: the programs of Matsui and Sekiguchi's paper by threads, under every way to share a heap, beside other
//! languages.
//!
//! # Picture
//! ```text
//!   definition ─► systems, built in a workshop ─► one thread: right? how many repetitions?
//!                                                    │
//!        system × threads, in turns, round by round ◄┘
//!          └─► outcome: gains, shares of collections ─► table | json | picture
//! ```
//! # Knows / does not know
//! Knows how to start programs, and that their threads do equal work. Does not know languages, nor how they collect: that is data
//! in `benches/definitions/gc.toml`, and programs.
//! # Invariants
//! 1. What gave a wrong answer is not timed, and has no time.
//! 2. A gain is of two runs in the same round.

mod definition;
mod json;
mod outcome;
mod pauses;
mod picture;
mod rounds;
mod table;
mod workshop;

use super::machine::Machine;
use super::stats::no_claim;
use super::trouble::Trouble;
use super::{Args, json as common, place};
use definition::{Definition, System};
use largesse_terminal::progress::Progress;
use largesse_terminal::say::say;
use largesse_terminal::table::Paper;
use outcome::Outcome;
use rounds::Plan;
use workshop::Workshop;

/// The word after `largesse bench`.
pub(super) const NAME: &str = "gc";
/// Runs of each system with each number of threads when nobody says.
const RUNS: u32 = 5;
/// Seconds after which a run is stopped when nobody says.
const CAP: u32 = 60;
/// EusLisp has no more threads.
const MOST_THREADS: u32 = 64;

/// Runs what was asked for and prints it. Whether everything ran and every answer is right.
pub(super) fn compare(args: &Args) -> Result<bool, Trouble> {
    let root = place::find(args.programs.as_deref())?;
    let definition = Definition::read(&root)?.only(&args.only)?;
    if args.list {
        definition.programs.iter().for_each(|program| say!("{:14} {}", program.name, program.title));
        definition.systems.iter().for_each(|system| say!("{:14} {}", system.name, system.title));
        return Ok(true);
    }
    let plan = Plan::of(&definition, args);
    let workshop = Workshop::open(&root).map_err(Trouble::Touch)?;
    let machine = Machine::here(&root);
    if args.json {
        say!("{}", common::machine(&machine, args.scale));
    } else {
        say!("{}\n", machine.line());
    }
    let here = built(args, &definition, &workshop);

    let chosen = definition.programs.iter().map(|program| {
        let systems: Vec<_> = here.iter().copied().filter(|system| system.has(program)).collect();
        (program, systems)
    });
    let chosen: Vec<_> = chosen.filter(|(_, systems)| !systems.is_empty()).collect();
    let progress = Progress::over(chosen.iter().map(|(_, systems)| plan.steps(systems.len())).sum());
    let mut outcomes = Vec::new();
    for (program, systems) in chosen {
        let lines = plan.run(program, &systems, &workshop, &progress, |told| {
            if args.json {
                progress.aside(|| say!("{}", json::run(told)));
            }
        });
        let outcome = Outcome::of(program, &lines);
        progress.aside(|| show(args, &definition, &outcome));
        outcomes.push(outcome);
    }
    progress.finish();
    if !args.json {
        legend(&plan, &here, &outcomes);
    }
    if let Some(path) = &args.svg {
        let systems: Vec<_> = here.iter().map(|it| (it.name.as_str(), it.title.as_str())).collect();
        let picture = picture::draw(&machine.line(), &systems, &outcomes).map_err(Trouble::Touch)?;
        std::fs::write(path, picture).map_err(|why| Trouble::Touch(format!("{}: {why}", path.display())))?;
    }
    Ok(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.troubles.is_empty()))
}

/// The systems that are here; says what to do about the others.
fn built<'a>(args: &Args, definition: &'a Definition, workshop: &Workshop) -> Vec<&'a System> {
    let mut here = Vec::new();
    for system in &definition.systems {
        match workshop.build(system) {
            Ok(()) => here.push(system),
            Err(why) if args.json => say!("{}", common::absent(NAME, Some(&system.name), &why)),
            Err(why) => say!("{}: {why}", system.name),
        }
    }
    here
}

fn show(args: &Args, definition: &Definition, outcome: &Outcome<'_>) {
    if args.json {
        json::outcome(outcome, &definition.reference).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", table::show(outcome, &definition.reference, Paper::here()));
    }
}

fn legend(plan: &Plan<'_>, here: &[&System], outcomes: &[Outcome<'_>]) {
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

/// One of the numbers after `--threads`.
pub(super) fn threads(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(threads) if (1..=MOST_THREADS).contains(&threads) => Ok(threads),
        _ => Err(format!("numbers from 1 to {MOST_THREADS} with commas between: 1,2,4")),
    }
}
