//! Compares the samples: ratios to stock, the best fixed page size, and the distance of `auto` from it.

use super::super::runner::Ended;
use super::super::stats::{Summary, noise};
use super::super::verdict::judge;
use super::decisions::Pass;
use super::plan::FarPlan;
use super::rounds::{FarContestant, Measurement, Samples};
use super::spec::{AUTO, MARKED};

/// One cell of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slowdown {
    Measured {
        summary: Summary,
        ratio: f64,
    },
    /// The run was stopped: its ratio to stock is above this number.
    Above(f64),
    Wrong,
    Failed,
    /// The cell needs less local memory than is possible.
    Absent,
}

/// The results of one bench.
#[derive(Debug)]
pub(super) struct FarOutcome<'a> {
    pub(super) bench: &'a str,
    pub(super) test: &'a str,
    pub(super) footprint: u64,
    pub(super) stock: Option<Summary>,
    /// Least distance of a ratio from 1 that counts as a difference.
    pub(super) noise: Option<f64>,
    pub(super) percents: &'a [u8],
    /// Cells by page size, then by share.
    pub(super) rows: Vec<(&'a str, Vec<Slowdown>)>,
    /// The tuner's decisions by share, for a program that marks its compute core.
    pub(super) decisions: Vec<Vec<Pass>>,
    pub(super) failures: Vec<String>,
    /// The program's description of its language and libraries.
    pub(super) about: String,
}

/// Returns the seconds of each run of one contestant, or what to show if they do not count.
fn seconds(
    plan: &FarPlan<'_>,
    found: &Measurement<'_>,
    contestant: FarContestant<'_>,
    samples: &Samples,
    failures: &mut Vec<String>,
) -> Result<Vec<f64>, Slowdown> {
    let (bench, test) = (plan.bench, &plan.bench.tests[0].name);
    let Some((baseline, _)) = found.stock.runs.first() else { return Err(Slowdown::Absent) };
    let mut right = Vec::new();
    for (run, _) in &samples.runs {
        match judge(bench, test, plan.scale, run, baseline) {
            Ok(measured) => right.push(measured.seconds),
            Err(why) => {
                failures.push(format!("WRONG: {}, {}: {why}", bench.name, contestant.name()));
                return Err(Slowdown::Wrong);
            }
        }
    }
    match &samples.ended {
        None => Ok(right),
        Some(Ended::Failed(_)) => Err(Slowdown::Failed),
        Some(Ended::Stopped) => Err(Slowdown::Above(bound(plan, &found.stock))),
    }
}

/// Returns the lower bound for a stopped run, as a multiple of the whole stock run.
fn bound(plan: &FarPlan<'_>, stock: &Samples) -> f64 {
    let whole: Vec<_> = stock.runs.iter().map(|(_, took)| took.as_secs_f64()).collect();
    Summary::of(&whole).map_or(1.0, |whole| plan.cap.as_secs_f64() / whole.median.max(1e-3))
}

impl<'a> FarOutcome<'a> {
    /// Judges every answer, then compares the times of right ones.
    pub(super) fn of(plan: &FarPlan<'a>, found: &Measurement<'_>) -> FarOutcome<'a> {
        let mut failures = Vec::new();
        let stocks = [
            (FarContestant::Stock { again: false }, &found.stock),
            (FarContestant::Stock { again: true }, &found.again),
        ];
        let cells = found.cells.iter().flatten().map(|(cell, samples)| (FarContestant::Far(*cell), samples));
        for (contestant, samples) in stocks.into_iter().chain(cells) {
            let why = match (&samples.ended, contestant) {
                (Some(Ended::Failed(why)), _) => why.clone(),
                (Some(Ended::Stopped), FarContestant::Stock { .. }) => {
                    format!("stopped after {} s; give more with --cap", plan.cap.as_secs())
                }
                _ => continue,
            };
            failures.push(format!("{}, {}: could not run: {why}", plan.bench.name, contestant.name()));
        }
        let [stock, again] =
            stocks.map(|(contestant, samples)| seconds(plan, found, contestant, samples, &mut failures));
        let (stock, again) = (stock.unwrap_or_default(), again.unwrap_or_default());
        let baseline = Summary::of(&stock);
        let mut slowdowns = found.cells.iter().map(|cell| {
            let Some((cell, samples)) = cell else { return Slowdown::Absent };
            match seconds(plan, found, FarContestant::Far(*cell), samples, &mut failures) {
                Err(instead) => instead,
                Ok(seconds) => match (Summary::of(&seconds), baseline) {
                    (Some(summary), Some(stock)) if stock.median > 0.0 => {
                        Slowdown::Measured { summary, ratio: summary.median / stock.median }
                    }
                    _ => Slowdown::Absent,
                },
            }
        });
        let columns = plan.spec.local_percent.len();
        let sizes = plan.spec.page_sizes.iter();
        let rows = sizes.map(|size| (size.as_str(), slowdowns.by_ref().take(columns).collect())).collect();
        drop(slowdowns);
        let marked = plan.spec.page_sizes.iter().position(|size| size == MARKED);
        let marked = marked.map_or(&[][..], |row| &found.cells[row * columns..][..columns]);
        let decided =
            |cell: &Option<(_, Samples)>| cell.as_ref().map(|(_, samples)| samples.decisions.clone());
        FarOutcome {
            bench: &plan.bench.name,
            test: &plan.bench.tests[0].name,
            footprint: found.footprint,
            stock: baseline,
            noise: noise(&stock, &again),
            percents: &plan.spec.local_percent,
            rows,
            decisions: marked.iter().map(|cell| decided(cell).unwrap_or_default()).collect(),
            failures,
            about: found.stock.runs.first().map(|(run, _)| run.peak.about.clone()).unwrap_or_default(),
        }
    }

    /// Returns the fixed page size with the smallest measured ratio in `column`.
    pub(super) fn best_fixed(&self, column: usize) -> Option<(&'a str, f64)> {
        let fixed = self.rows.iter().filter(|(size, _)| ![AUTO, MARKED].contains(size));
        let ratios = fixed.filter_map(|(size, row)| match row.get(column)? {
            Slowdown::Measured { ratio, .. } => Some((*size, *ratio)),
            _ => None,
        });
        ratios.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Returns the worst fixed size's ratio in `column` divided by that of `auto`, a lower bound if it was stopped.
    pub(super) fn worst_to_auto(&self, column: usize) -> Option<f64> {
        let ratio = |row: &Vec<Slowdown>| match *row.get(column)? {
            Slowdown::Measured { ratio, .. } => Some((ratio, true)),
            Slowdown::Above(bound) => Some((bound, false)),
            _ => None,
        };
        let of_auto = self.rows.iter().find(|(size, _)| *size == AUTO).and_then(|(_, row)| ratio(row));
        let (auto, true) = of_auto? else { return None };
        let fixed = self.rows.iter().filter(|(size, _)| ![AUTO, MARKED].contains(size));
        let worst = fixed.filter_map(|(_, row)| ratio(row)).map(|(ratio, _)| ratio).max_by(f64::total_cmp)?;
        Some(worst / auto)
    }

    /// Returns the ratio of `auto` in `column` divided by that of the best fixed size: measured, or a bound.
    pub(super) fn auto_to_best(&self, column: usize) -> Option<Slowdown> {
        let (_, best) = self.best_fixed(column)?;
        let (_, auto) = self.rows.iter().find(|(size, _)| *size == AUTO)?;
        match *auto.get(column)? {
            Slowdown::Measured { summary, ratio } => {
                Some(Slowdown::Measured { summary, ratio: ratio / best })
            }
            Slowdown::Above(bound) => Some(Slowdown::Above(bound / best)),
            _ => None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::runner::tests::run_of;
    use super::super::plan::{FarCell, tests::with_plan};
    use super::*;
    use std::time::Duration;

    /// Makes runs of the test `bt` that printed `bits`; each took a second more than it measured.
    pub(in super::super) fn samples(seconds: &[f64], bits: &str) -> Samples {
        let run = |&seconds: &f64| {
            let took = Duration::from_secs_f64(seconds + 1.0);
            (run_of("bt", seconds, 7.0, bits), took)
        };
        Samples { runs: seconds.iter().map(run).collect(), ..Samples::default() }
    }

    /// Gives `look` the outcome of `bt` if stock took one second and each cell has the samples of `cell`.
    pub(in super::super) fn with_outcome<T>(
        cell: impl Fn(FarCell<'_>) -> Samples,
        look: impl FnOnce(&FarPlan<'_>, &FarOutcome<'_>) -> T,
    ) -> T {
        with_plan("bt", &[], |plan| {
            let cells = plan.cells(100 << 20).into_iter().map(|it| it.map(|it| (it, cell(it)))).collect();
            let (stock, again) = (samples(&[1.0, 1.0, 1.0], "aa"), samples(&[1.0, 1.02, 1.02], "aa"));
            let found = Measurement { footprint: 100 << 20, stock, again, cells };
            look(plan, &FarOutcome::of(plan, &found))
        })
    }

    fn stopped() -> Samples {
        Samples { ended: Some(Ended::Stopped), ..Samples::default() }
    }

    #[test]
    fn ratios_are_of_medians_and_the_best_fixed_size_is_found() {
        let cell = |cell: FarCell<'_>| match cell.page_size {
            "64K" => samples(&[2.0, 9.0, 2.0], "aa"),
            "auto" => samples(&[2.5, 2.5, 2.5], "aa"),
            _ => samples(&[4.0, 4.0, 4.0], "aa"),
        };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.failures, [""; 0]);
            assert_eq!(outcome.best_fixed(4), Some(("64K", 2.0)));
            assert!(
                matches!(outcome.auto_to_best(0), Some(Slowdown::Measured { ratio, .. }) if ratio == 1.25)
            );
            assert_eq!(outcome.worst_to_auto(0), Some(1.6));
        });
    }

    #[test]
    fn stopped_runs_have_a_bound() {
        let cell = |cell: FarCell<'_>| if cell.page_size == "4K" { samples(&[3.0], "aa") } else { stopped() };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.rows[1].1[0], Slowdown::Above(30.0));
            assert_eq!(outcome.best_fixed(0), Some(("4K", 3.0)));
            assert_eq!(outcome.auto_to_best(0), Some(Slowdown::Above(10.0)));
            assert_eq!(outcome.failures, [""; 0]);
        });
        with_outcome(|_| stopped(), |_, outcome| assert_eq!(outcome.best_fixed(0), None));
    }

    #[test]
    fn wrong_answers_fail_even_if_stopped_later() {
        let cell = |cell: FarCell<'_>| match (cell.page_size, cell.percent) {
            ("16K", 50) => samples(&[0.1, 0.1, 0.1], "ab"),
            ("1M", 5) => Samples { ended: Some(Ended::Stopped), ..samples(&[3.0], "ab") },
            _ => samples(&[3.0, 3.0, 3.0], "aa"),
        };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.failures.len(), 2, "{:?}", outcome.failures);
            assert!(outcome.failures[0].starts_with("WRONG: bt, 50% local, 16K"), "{:?}", outcome.failures);
            assert_eq!(outcome.rows[1].1[1], Slowdown::Wrong);
            assert_eq!(outcome.rows[4].1[4], Slowdown::Wrong);
        });
    }

    #[test]
    fn failed_runs_are_failures() {
        let failed = Samples { ended: Some(Ended::Failed("exit status: 74".into())), ..Samples::default() };
        let cell = std::cell::Cell::new(Some(failed));
        let first = |_: FarCell<'_>| cell.take().unwrap_or_else(|| samples(&[1.0], "aa"));
        with_outcome(first, |_, outcome| {
            assert_eq!(outcome.rows[0].1[0], Slowdown::Failed);
            assert!(outcome.failures[0].contains("74"), "{:?}", outcome.failures);
        });
    }
}
