//! Measures the kernels at every length, with OpenBLAS and plain loops for comparison, as per cent of the cache
//! level's limit: `largesse bench kernels`.
//!
//! # Picture
//! ```text
//!   limits: loads and operations alone, at each level ──────────────┐
//!   case (kernel × length × place) ─► contestants, answers checked ─► turns ─► row ─► table | json | picture
//! ```
//! # Knows / does not know
//! Knows the kernels, and peers that can be loaded. Does not know how kernels work.
//! # Invariants
//! 1. An answer is checked before it is timed: Largesse's must equal the reference to the bit, others within
//!    rounding. A wrong peer is named and left out of the row; only Largesse's wrong answers fail the run.
//! 2. Contestants take turns; the best turn of each is shown, with the distance of the median from it.

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
use super::error::Error;
use super::machine::MachineFacts;
use super::place;
use case::{BlasKernel, Case};
use contestants::Peers;
use data::Data;
use largesse_kernels::{Isa, Kernels};
use largesse_machine::cycles::Counter;
use largesse_terminal::progress::Progress;
use largesse_terminal::say::say;
use largesse_terminal::table::Paper;
use levels::Levels;

/// Argument of `largesse bench` for this comparison.
pub(super) const NAME: &str = "kernels";
/// Default number of turns of each contestant.
const TURNS: u32 = 15;

/// Measures and prints. Returns whether every answer of Largesse's kernels was right.
pub(super) fn compare(args: &Args) -> Result<bool, Error> {
    let kernels = chosen(&args.only)?;
    if args.list {
        kernels.iter().for_each(|kernel| say!("{:8} {}", kernel.name(), kernel.formula()));
        return Ok(true);
    }
    let root = place::find(args.programs.as_deref())?;
    let data =
        Data::new(args.scale).map_err(|why| Error::Touch(format!("no memory to measure in: {why}")))?;
    let peers = Peers::find(&root);
    let machine = MachineFacts::here(&root);
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
        let picture = show::picture(&rows, &levels, &machine.line()).map_err(Error::Touch)?;
        std::fs::write(path, picture).map_err(|why| Error::Touch(format!("{}: {why}", path.display())))?;
    }
    Ok(good)
}

/// Returns the kernels that `--only` names, or all.
fn chosen(only: &[String]) -> Result<Vec<BlasKernel>, Error> {
    let there = || BlasKernel::ALL.iter().map(|kernel| kernel.name().to_owned()).collect();
    if only.is_empty() {
        return Ok(BlasKernel::ALL.to_vec());
    }
    let find = |name: &String| {
        let found = BlasKernel::ALL.into_iter().find(|kernel| kernel.name() == name);
        found.ok_or_else(|| Error::Only { asked: name.clone(), there: there() })
    };
    only.iter().map(find).collect()
}
