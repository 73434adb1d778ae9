//! `largesse bench kernels`: the kernels at every length, beside OpenBLAS and plain loops, as per cent of what
//! the cache level allows.
//!
//! # Picture
//! ```text
//!   limits: loads and operations alone, at each level ──────────────┐
//!   case (kernel × length × place) ─► contestants, answers checked ─► turns ─► row ─► table | json | picture
//! ```
//! # Knows / does not know
//! Knows the kernels, and peers that can be loaded. Does not know how kernels work.
//! # Invariants
//! 1. Nothing is timed before its answer was found right: ours to the bit, others within rounding. A peer that is wrong
//!    is named and left out of the row; only ours fail the run.
//! 2. Contestants take turns; the best of them is shown with how far the middle one is above it.

mod case;
mod contestants;
mod data;
mod ladder;
mod levels;
mod loops;
mod open_blas;
mod rows;
mod sampling;
mod show;

use super::Args;
use super::machine::Machine;
use super::place;
use super::trouble::Trouble;
use case::{Case, Kernel};
use contestants::Peers;
use data::Data;
use largesse_kernels::{Isa, Kernels};
use largesse_machine::cycles::Counter;
use largesse_terminal::progress::Progress;
use largesse_terminal::say::say;
use largesse_terminal::table::Paper;
use levels::Levels;

/// The word after `largesse bench`.
pub(super) const NAME: &str = "kernels";
/// Turns of each contestant when nobody says.
const TURNS: u32 = 15;

/// Measures and prints. Whether every answer of ours was right.
pub(super) fn compare(args: &Args) -> Result<bool, Trouble> {
    let kernels = chosen(&args.only)?;
    if args.list {
        kernels.iter().for_each(|kernel| say!("{:8} {}", kernel.name(), kernel.formula()));
        return Ok(true);
    }
    let root = place::find(args.programs.as_deref())?;
    let data =
        Data::new(args.scale).map_err(|why| Trouble::Touch(format!("no memory to measure in: {why}")))?;
    let peers = Peers::find(&root);
    let machine = Machine::here(&root);
    let isas: Vec<Kernels> = Isa::ALL.into_iter().filter_map(Kernels::of).collect();
    let turns = args.runs.unwrap_or(TURNS);

    let counter = Counter::calibrate();
    let levels = Levels::measure(&data, turns, &counter);
    if args.json {
        say!("{}", super::json::machine(&machine, 1.0));
        say!("{}", show::levels_json(&levels));
        peers.absent().for_each(|(name, why)| say!("{}", super::json::absent(NAME, Some(name), why)));
    } else {
        say!("{}\n", machine.line());
        say!("{}", Paper::here().page(&show::levels(&levels)));
        peers.absent().for_each(|(name, why)| say!("{name}: skipped: {why}"));
    }

    let cases: Vec<Case> = kernels.iter().flat_map(|kernel| kernel.cases(data.room())).collect();
    let progress = Progress::over(cases.len() as u64);
    let (mut rows, mut good) = (Vec::new(), true);
    for case in cases {
        progress.at(case.title());
        let contestants = contestants::of(&case, &isas, &peers);
        let row = rows::measure(&case, &data, &contestants, &levels, turns, &counter);
        good &= !row.wrong.iter().any(|wrong| wrong.ours);
        progress.step();
        if args.json {
            progress.aside(|| show::row_json(&row).iter().for_each(|line| say!("{line}")));
        }
        rows.push(row);
    }
    progress.finish();
    let ladder = ladder::climb(&data, &peers, &levels, turns, &counter);
    if args.json {
        show::ladder_json(&ladder).iter().for_each(|line| say!("{line}"));
    } else {
        say!("{}", show::tables(&rows, Paper::here()));
        say!("{}", Paper::here().page(&show::ladder(&ladder)));
        say!("{}", Paper::here().page(show::LEGEND));
    }
    if let Some(path) = &args.svg {
        let picture = show::picture(&rows, &levels, &machine.line()).map_err(Trouble::Touch)?;
        std::fs::write(path, picture).map_err(|why| Trouble::Touch(format!("{}: {why}", path.display())))?;
    }
    Ok(good)
}

/// Those that `--only` names, or all.
fn chosen(only: &[String]) -> Result<Vec<Kernel>, Trouble> {
    let there = || Kernel::ALL.iter().map(|kernel| kernel.name().to_owned()).collect();
    if only.is_empty() {
        return Ok(Kernel::ALL.to_vec());
    }
    let find = |name: &String| {
        let found = Kernel::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| Trouble::Only { asked: name.clone(), there: there() })
    };
    only.iter().map(find).collect()
}
