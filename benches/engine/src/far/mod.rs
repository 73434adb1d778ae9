//! Measures what a program loses with less local memory than it uses: `largesse bench far`.
//!
//! Rows are page sizes and the kernel's own ways to evict memory (peers); columns are shares of local memory.
//! Contestants are stock (the program without Largesse), stock again, and every cell. With peers, each program runs in
//! a control group whose limit is the column's share of the program's data.
//! # Invariants
//! 1. An answer that differs from stock's in any bit has no time.
//! 2. A run that was stopped has a lower bound, and counts as neither wrong nor measured.

mod device;
mod guard;
mod least;
mod moved;
mod plan;
mod table;

use crate::args::Args;
use crate::engine::*;
use guard::Guard;
use least::Trace;
use plan::{FarColumn, FarPlan};
use serde_json::json;
use std::cell::RefCell;
use std::path::Path;

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(crate) fn compare(args: &Args, root: &Path, benches: &[Bench], settings: &Settings) -> Result<bool> {
    let (folder, store) = (temp_dir()?, args.store());
    let files = plan::store_folder(store);
    let guard = match (&files, args.peers.as_deref()) {
        (_, None) => None,
        (Some(folder), Some(peers)) => Some(RefCell::new(Guard::start(peers, folder)?)),
        (None, _) => {
            return Err(format!("{store} may be in this machine's memory: --peers needs --store file:PATH"));
        }
    };
    let recorder = || compiled(root, "far/trace.c", &["-O2"], folder.path());
    let recorder = args.least.then(recorder).transpose()?;
    let plan = |bench| FarPlan::new(args, root, bench, settings, folder.path(), guard.as_ref());
    let plans = benches.iter().map(plan).collect::<Result<Vec<_>>>()?;
    let cells = plans.iter().map(|plan| plan.spec.local_percent.len() * plan.ways.len());
    let steps = cells.map(|cells| 1 + args.rounds() as usize * (2 + cells)).sum();
    let mut session = Session::begin(args, root, args.scale, steps);
    plans.iter().for_each(|plan| measure(plan, recorder.as_deref(), &mut session));
    let mut legend = String::new();
    if session.compared > 0 {
        legend += include_str!("../legends/far.txt");
        legend += if args.least { include_str!("../legends/far-least.txt") } else { "" };
        if let Some(folder) = files.filter(|_| guard.is_some()) {
            legend += include_str!("../legends/far-peers.txt");
            session.progress.at("the device".into());
            match device::measure(&folder) {
                Ok(outcome) => session.show(&outcome),
                Err(why) => session.skip("device", &why),
            }
        }
    }
    session.end(&legend, &[], &[])
}

/// Runs all rounds of a bench and prints its outcome, or why it is not possible here.
fn measure(plan: &FarPlan<'_>, recorder: Option<&Path>, session: &mut Session<'_>) {
    let name = &plan.bench.name;
    if !session.has_room(name, plan.needed_mib()) {
        return;
    }
    session.progress.at(format!("{name}, its footprint"));
    let footprint = match plan.footprint() {
        Ok(footprint) => footprint,
        Err(why) => return session.skip(name, &why),
    };
    let (data, own) = (footprint.data, footprint.own);
    session.print(&[json!({ "kind": "footprint", "bench": name, "bytes": data, "own": own })], "");
    session.progress.step();
    let columns = plan.columns(footprint);
    let trace = recorder.and_then(|recorder| trace(plan, recorder, session, &columns));
    let mut all = vec![plan.stock("stock"), plan.stock("stock again")];
    for way in &plan.ways {
        all.extend(columns.iter().map(|column| plan.cell(way, *column, data)));
    }
    let samples = session.rounds(name, &all, Some(plan.args.limit()));
    session.show(&table::outcome(plan, data, &columns, &samples, trace.as_ref()));
}

/// Records which pages the program touches, or returns `None` if they cannot be recorded.
fn trace(plan: &FarPlan<'_>, by: &Path, session: &Session<'_>, columns: &[FarColumn]) -> Option<Trace> {
    let bench = &plan.bench.name;
    session.progress.at(format!("{bench}, its touches"));
    let smallest = columns.iter().map(|column| column.local).min()?;
    let read = Trace::record(plan.stock_command(), by, &plan.folder.join("trace"), smallest, plan.cap());
    let missing =
        |why: &String| session.absent(bench, Some("least"), why, &format!("{bench}: touches: {why}"));
    read.inspect_err(missing).ok()
}
