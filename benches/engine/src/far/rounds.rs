//! The rounds of one bench: stock, stock again, and every cell, in turns.

use super::super::machine;
use super::super::runner::{Ended, Run, run_within, turns};
use super::super::settings::Settings;
use super::decisions::{self, Pass};
use super::footprint::{self, Report};
use super::plan::{Cell, Plan};
use super::spec::MARKED;
use largesse_terminal::progress::Progress;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Who runs: the baseline, itself again, a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who<'a> {
    Stock { again: bool },
    Far(Cell<'a>),
}

impl Who<'_> {
    pub(super) fn name(&self) -> String {
        match self {
            Who::Stock { again: false } => "stock".into(),
            Who::Stock { again: true } => "stock again".into(),
            Who::Far(cell) => format!("{}% local, {}", cell.percent, cell.page_size),
        }
    }
}

/// What one of them did over all rounds.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// And how long all of it took.
    pub(super) runs: Vec<(Run, Duration)>,
    /// The tuner's decisions in the last one, if the program marks its compute core.
    pub(super) decisions: Vec<Pass>,
    /// Why there are no more.
    pub(super) ended: Option<Ended>,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub(super) footprint: u64,
    pub(super) stock: Samples,
    pub(super) again: Samples,
    /// In the order of [`Plan::cells`].
    pub(super) cells: Vec<Option<(Cell<'a>, Samples)>>,
}

/// What happens while a plan runs.
#[derive(Debug)]
pub(super) enum Told<'a> {
    Footprint(u64),
    Run {
        who: Who<'a>,
        round: usize,
        run: &'a Run,
        report: Value,
    },
    Stopped {
        who: Who<'a>,
        round: usize,
        cap: Duration,
    },
    /// The whole bench.
    Skipped(&'a str),
}

/// All rounds. `None` when the bench is not possible here.
pub(super) fn run<'a>(
    plan: &Plan<'a>,
    settings: &Settings,
    root: &Path,
    progress: &Progress,
    tell: impl Fn(&Told<'_>),
) -> Option<Found<'a>> {
    let skip = |why: &str| tell(&Told::Skipped(why));
    let (needed, available) = (plan.needed_mib(), machine::available_mib());
    if needed > available {
        skip(&format!("needs {needed} MiB of memory; {available} MiB are available"));
        return None;
    }
    let words = plan.bench.words(root, plan.scale, plan.times);
    let report = Report::new().inspect_err(|why| skip(why)).ok()?;
    progress.at(format!("{}, its footprint", plan.bench.name));
    let footprint = footprint::measure(plan, settings, &words, &report).inspect_err(|why| skip(why)).ok()?;
    tell(&Told::Footprint(footprint));
    progress.step();

    let cells = plan.cells(footprint);
    let mut all = vec![Some(Who::Stock { again: false }), Some(Who::Stock { again: true })];
    all.extend(cells.iter().map(|cell| cell.map(Who::Far)));
    let mut samples: Vec<_> = all.iter().map(|_| Samples::default()).collect();
    for round in 0..plan.runs {
        for place in turns(all.len(), round) {
            if let Some(who) = all[place]
                && samples[place].ended.is_none()
                && samples[0].ended.is_none()
            {
                progress.at(format!("{}, {}", plan.bench.name, who.name()));
                let command = match who {
                    Who::Stock { .. } => settings.command(plan.stock, &[], &words),
                    Who::Far(cell) => {
                        let options = plan.options(cell.local, cell.page_size, report.path());
                        let marks = if cell.page_size == MARKED { &plan.spec.marked[..] } else { &[] };
                        let marked = words.iter().cloned().chain(marks.iter().map(OsString::from));
                        settings.command(plan.far, &options, &marked.collect::<Vec<_>>())
                    }
                };
                let done = plan.warm_up().map_err(Ended::Failed);
                match done.and_then(|()| run_within(command, plan.cap)) {
                    Ok((run, took)) => {
                        let report = report.take();
                        samples[place].decisions = decisions::of(&report);
                        tell(&Told::Run { who, round, run: &run, report });
                        samples[place].runs.push((run, took));
                    }
                    Err(ended) => {
                        if ended == Ended::Stopped {
                            tell(&Told::Stopped { who, round, cap: plan.cap });
                        }
                        samples[place].ended = Some(ended);
                    }
                }
            }
            progress.step();
        }
    }
    let mut samples = samples.into_iter();
    let (stock, again) = (samples.next()?, samples.next()?);
    let cells = cells.into_iter().zip(samples).map(|(cell, samples)| Some((cell?, samples))).collect();
    Some(Found { footprint, stock, again, cells })
}
