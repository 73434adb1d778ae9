//! What the rounds found: ratios to stock, the best fixed page size, and how far `auto` is from it.

use super::super::runner::Ended;
use super::super::stats::{Summary, noise};
use super::super::verdict::judge;
use super::decisions::Pass;
use super::plan::Plan;
use super::rounds::{Found, Samples, Who};
use super::spec::{AUTO, MARKED};

/// One place in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Slowdown {
    Measured {
        summary: Summary,
        ratio: f64,
    },
    /// Stopped: it is more than so many times stock.
    Above(f64),
    Wrong,
    Failed,
    /// Not possible.
    Absent,
}

/// A bench that was run.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) bench: &'a str,
    pub(super) test: &'a str,
    pub(super) footprint: u64,
    pub(super) stock: Option<Summary>,
    /// The ratio's distance from 1 below which nothing is claimed.
    pub(super) noise: Option<f64>,
    pub(super) percents: &'a [u8],
    /// By page size, then by share.
    pub(super) rows: Vec<(&'a str, Vec<Slowdown>)>,
    /// Of a program that marks its compute core, by share.
    pub(super) decisions: Vec<Vec<Pass>>,
    pub(super) troubles: Vec<String>,
    /// What the program says it is.
    pub(super) about: String,
}

/// What is right of one contestant: the seconds of each run, or what to show instead.
fn seconds(
    plan: &Plan<'_>,
    found: &Found<'_>,
    who: Who<'_>,
    samples: &Samples,
    troubles: &mut Vec<String>,
) -> Result<Vec<f64>, Slowdown> {
    let (bench, test) = (plan.bench, &plan.bench.tests[0].name);
    let Some((baseline, _)) = found.stock.runs.first() else { return Err(Slowdown::Absent) };
    let mut right = Vec::new();
    for (run, _) in &samples.runs {
        match judge(bench, test, plan.scale, run, baseline) {
            Ok(measured) => right.push(measured.seconds),
            Err(why) => {
                troubles.push(format!("WRONG: {}, {}: {why}", bench.name, who.name()));
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

/// So many times longer than all of a stock run is what was stopped.
fn bound(plan: &Plan<'_>, stock: &Samples) -> f64 {
    let whole: Vec<_> = stock.runs.iter().map(|(_, took)| took.as_secs_f64()).collect();
    Summary::of(&whole).map_or(1.0, |whole| plan.cap.as_secs_f64() / whole.median.max(1e-3))
}

impl<'a> Outcome<'a> {
    /// Judges every answer, then compares what is right.
    pub(super) fn of(plan: &Plan<'a>, found: &Found<'_>) -> Outcome<'a> {
        let mut troubles = Vec::new();
        let stocks =
            [(Who::Stock { again: false }, &found.stock), (Who::Stock { again: true }, &found.again)];
        let cells = found.cells.iter().flatten().map(|(cell, samples)| (Who::Far(*cell), samples));
        for (who, samples) in stocks.into_iter().chain(cells) {
            let why = match (&samples.ended, who) {
                (Some(Ended::Failed(why)), _) => why.clone(),
                (Some(Ended::Stopped), Who::Stock { .. }) => {
                    format!("stopped after {} s; give more with --cap", plan.cap.as_secs())
                }
                _ => continue,
            };
            troubles.push(format!("{}, {}: could not run: {why}", plan.bench.name, who.name()));
        }
        let [stock, again] = stocks.map(|(who, samples)| seconds(plan, found, who, samples, &mut troubles));
        let (stock, again) = (stock.unwrap_or_default(), again.unwrap_or_default());
        let baseline = Summary::of(&stock);
        let mut slowdowns = found.cells.iter().map(|cell| {
            let Some((cell, samples)) = cell else { return Slowdown::Absent };
            match seconds(plan, found, Who::Far(*cell), samples, &mut troubles) {
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
        Outcome {
            bench: &plan.bench.name,
            test: &plan.bench.tests[0].name,
            footprint: found.footprint,
            stock: baseline,
            noise: noise(&stock, &again),
            percents: &plan.spec.local_percent,
            rows,
            decisions: marked.iter().map(|cell| decided(cell).unwrap_or_default()).collect(),
            troubles,
            about: found.stock.runs.first().map(|(run, _)| run.peak.about.clone()).unwrap_or_default(),
        }
    }

    /// The fixed page size with the smallest measured ratio in `column`.
    pub(super) fn best_fixed(&self, column: usize) -> Option<(&'a str, f64)> {
        let fixed = self.rows.iter().filter(|(size, _)| ![AUTO, MARKED].contains(size));
        let ratios = fixed.filter_map(|(size, row)| match row.get(column)? {
            Slowdown::Measured { ratio, .. } => Some((*size, *ratio)),
            _ => None,
        });
        ratios.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// The worst fixed size in `column` over `auto`: at least so much, when it was stopped.
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

    /// `auto` in `column` over the best fixed size: measured, or a bound.
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
    use super::super::plan::{Cell, tests::with_plan};
    use super::*;
    use std::time::Duration;

    /// Runs of the test `bt` that gave `bits`; each took a second more than it measured.
    pub(in super::super) fn samples(seconds: &[f64], bits: &str) -> Samples {
        let run = |&seconds: &f64| {
            let took = Duration::from_secs_f64(seconds + 1.0);
            (run_of("bt", seconds, 7.0, bits), took)
        };
        Samples { runs: seconds.iter().map(run).collect(), ..Samples::default() }
    }

    /// The outcome of `bt` when stock took one second and each cell what `cell` says.
    pub(in super::super) fn with_outcome<T>(
        cell: impl Fn(Cell<'_>) -> Samples,
        look: impl FnOnce(&Plan<'_>, &Outcome<'_>) -> T,
    ) -> T {
        with_plan("bt", &[], |plan| {
            let cells = plan.cells(100 << 20).into_iter().map(|it| it.map(|it| (it, cell(it)))).collect();
            let (stock, again) = (samples(&[1.0, 1.0, 1.0], "aa"), samples(&[1.0, 1.02, 1.02], "aa"));
            let found = Found { footprint: 100 << 20, stock, again, cells };
            look(plan, &Outcome::of(plan, &found))
        })
    }

    fn stopped() -> Samples {
        Samples { ended: Some(Ended::Stopped), ..Samples::default() }
    }

    #[test]
    fn ratios_are_of_medians_and_the_best_fixed_size_is_found() {
        let cell = |cell: Cell<'_>| match cell.page_size {
            "64K" => samples(&[2.0, 9.0, 2.0], "aa"),
            "auto" => samples(&[2.5, 2.5, 2.5], "aa"),
            _ => samples(&[4.0, 4.0, 4.0], "aa"),
        };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.troubles, [""; 0]);
            assert_eq!(outcome.best_fixed(4), Some(("64K", 2.0)));
            assert!(
                matches!(outcome.auto_to_best(0), Some(Slowdown::Measured { ratio, .. }) if ratio == 1.25)
            );
            assert_eq!(outcome.worst_to_auto(0), Some(1.6));
        });
    }

    #[test]
    fn what_was_stopped_is_above_the_cap_over_a_whole_stock_run_and_no_trouble() {
        let cell = |cell: Cell<'_>| if cell.page_size == "4K" { samples(&[3.0], "aa") } else { stopped() };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.rows[1].1[0], Slowdown::Above(30.0));
            assert_eq!(outcome.best_fixed(0), Some(("4K", 3.0)));
            assert_eq!(outcome.auto_to_best(0), Some(Slowdown::Above(10.0)));
            assert_eq!(outcome.troubles, [""; 0]);
        });
        with_outcome(|_| stopped(), |_, outcome| assert_eq!(outcome.best_fixed(0), None));
    }

    #[test]
    fn a_wrong_answer_is_a_trouble_even_when_it_was_fast_or_stopped_later() {
        let cell = |cell: Cell<'_>| match (cell.page_size, cell.percent) {
            ("16K", 50) => samples(&[0.1, 0.1, 0.1], "ab"),
            ("1M", 5) => Samples { ended: Some(Ended::Stopped), ..samples(&[3.0], "ab") },
            _ => samples(&[3.0, 3.0, 3.0], "aa"),
        };
        with_outcome(cell, |_, outcome| {
            assert_eq!(outcome.troubles.len(), 2, "{:?}", outcome.troubles);
            assert!(outcome.troubles[0].starts_with("WRONG: bt, 50% local, 16K"), "{:?}", outcome.troubles);
            assert_eq!(outcome.rows[1].1[1], Slowdown::Wrong);
            assert_eq!(outcome.rows[4].1[4], Slowdown::Wrong);
        });
    }

    #[test]
    fn a_run_that_fails_is_a_trouble() {
        let failed = Samples { ended: Some(Ended::Failed("exit status: 74".into())), ..Samples::default() };
        let cell = std::cell::Cell::new(Some(failed));
        let first = |_: Cell<'_>| cell.take().unwrap_or_else(|| samples(&[1.0], "aa"));
        with_outcome(first, |_, outcome| {
            assert_eq!(outcome.rows[0].1[0], Slowdown::Failed);
            assert!(outcome.troubles[0].contains("74"), "{:?}", outcome.troubles);
        });
    }
}
