//! Runs the rounds of one bench: stock, stock again, and every cell, in turns.

use super::super::machine;
use super::super::runner::{Ended, Run, run_within, turns};
use super::super::settings::Settings;
use super::decisions::{self, Pass};
use super::footprint::{self, Report};
use super::plan::{FarCell, FarPlan};
use super::spec::MARKED;
use largesse_terminal::progress::Progress;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// One contestant of the rounds: the baseline, its second series, or a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FarContestant<'a> {
    Stock { again: bool },
    Far(FarCell<'a>),
}

impl FarContestant<'_> {
    pub(super) fn name(&self) -> String {
        match self {
            FarContestant::Stock { again: false } => "stock".into(),
            FarContestant::Stock { again: true } => "stock again".into(),
            FarContestant::Far(cell) => format!("{}% local, {}", cell.percent, cell.page_size),
        }
    }
}

/// The runs of one contestant.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Results and the time of each whole run.
    pub(super) runs: Vec<(Run, Duration)>,
    /// The tuner's decisions in the last run, if the program marks its compute core.
    pub(super) decisions: Vec<Pass>,
    /// The reason why there are no more runs.
    pub(super) ended: Option<Ended>,
}

/// The measurements of one bench.
#[derive(Debug)]
pub(super) struct Measurement<'a> {
    pub(super) footprint: u64,
    pub(super) stock: Samples,
    pub(super) again: Samples,
    /// Samples of the cells, in the order of [`FarPlan::cells`].
    pub(super) cells: Vec<Option<(FarCell<'a>, Samples)>>,
}

/// An event during a bench, for the caller to print.
#[derive(Debug)]
pub(super) enum FarEvent<'a> {
    Footprint(u64),
    Run {
        contestant: FarContestant<'a>,
        round: usize,
        run: &'a Run,
        report: Value,
    },
    Stopped {
        contestant: FarContestant<'a>,
        round: usize,
        cap: Duration,
    },
    /// The whole bench was skipped.
    Skipped(&'a str),
}

/// Runs all rounds; returns `None` if the bench is not possible here.
pub(super) fn run<'a>(
    plan: &FarPlan<'a>,
    settings: &Settings,
    root: &Path,
    progress: &Progress,
    tell: impl Fn(&FarEvent<'_>),
) -> Option<Measurement<'a>> {
    let skip = |why: &str| tell(&FarEvent::Skipped(why));
    let (needed, available) = (plan.needed_mib(), machine::available_mib());
    if needed > available {
        skip(&format!("needs {needed} MiB of memory; {available} MiB are available"));
        return None;
    }
    let words = plan.bench.words(root, plan.scale, plan.times);
    let report = Report::new().inspect_err(|why| skip(why)).ok()?;
    progress.at(format!("{}, its footprint", plan.bench.name));
    let footprint = footprint::measure(plan, settings, &words, &report).inspect_err(|why| skip(why)).ok()?;
    tell(&FarEvent::Footprint(footprint));
    progress.step();

    let cells = plan.cells(footprint);
    let mut all =
        vec![Some(FarContestant::Stock { again: false }), Some(FarContestant::Stock { again: true })];
    all.extend(cells.iter().map(|cell| cell.map(FarContestant::Far)));
    let mut samples: Vec<_> = all.iter().map(|_| Samples::default()).collect();
    for round in 0..plan.runs {
        for place in turns(all.len(), round) {
            if let Some(contestant) = all[place]
                && samples[place].ended.is_none()
                && samples[0].ended.is_none()
            {
                progress.at(format!("{}, {}", plan.bench.name, contestant.name()));
                let command = match contestant {
                    FarContestant::Stock { .. } => settings.command(plan.stock, &[], &words),
                    FarContestant::Far(cell) => {
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
                        tell(&FarEvent::Run { contestant, round, run: &run, report });
                        samples[place].runs.push((run, took));
                    }
                    Err(ended) => {
                        if ended == Ended::Stopped {
                            tell(&FarEvent::Stopped { contestant, round, cap: plan.cap });
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
    Some(Measurement { footprint, stock, again, cells })
}
