//! Turns the samples of a comparison into a table: one line a test, one cell a contestant.

use super::definition::Bench;
use super::runner::{Contestant, Run};
use super::settings::Role;
use super::stats::{Summary, no_claim, noise};
use super::verdict::judge;

/// The runs of one contestant.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) runs: Vec<Run>,
    /// The reason why it did not run, or not in all rounds.
    pub(super) failure: Option<String>,
}

/// The results of one bench.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) bench: &'a Bench,
    pub(super) contestants: Vec<Contestant<'a>>,
    /// One line for each test, one for their total, one for the peak of resident memory.
    pub(super) lines: Vec<TableLine>,
    /// Messages on wrong answers and contestants that could not run.
    pub(super) failures: Vec<String>,
    /// The program's description of its language and libraries.
    pub(super) about: String,
}

/// The unit of a line's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Kib,
}

/// One line of the table.
#[derive(Debug)]
pub(super) struct TableLine {
    pub(super) name: String,
    pub(super) unit: Unit,
    /// Cells in the order of the contestants; the first is the baseline's.
    pub(super) cells: Vec<Cell>,
    /// Least distance of a ratio from 1 that counts as a difference.
    pub(super) noise: Option<f64>,
}

/// The result of one contestant on one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    /// Every answer was right; the ratio is to the baseline's median.
    Measured {
        summary: Summary,
        ratio: Option<f64>,
    },
    Wrong,
    Absent,
}

impl Cell {
    pub(super) fn ratio(&self) -> Option<f64> {
        if let Cell::Measured { ratio, .. } = self { *ratio } else { None }
    }
}

impl TableLine {
    /// Returns the index and the ratio of the peer with the smallest ratio.
    pub(super) fn best_peer(&self, contestants: &[Contestant<'_>]) -> Option<(usize, f64)> {
        let peers = contestants.iter().enumerate().filter(|(_, one)| one.setting.role == Role::Peer);
        let ratios = peers.filter_map(|(place, _)| Some((place, self.cells[place].ratio()?)));
        ratios.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// Returns the smallest number of runs among the contestants that ran.
    fn runs(&self) -> usize {
        let measured = self.cells.iter().filter_map(|cell| match cell {
            Cell::Measured { summary, .. } => Some(summary.runs),
            Cell::Wrong | Cell::Absent => None,
        });
        measured.min().unwrap_or(0)
    }

    /// Returns the verdict on the contestant `subject` in words.
    pub(super) fn reading(&self, subject: usize) -> String {
        let (less, more) = match self.unit {
            Unit::Seconds => ("less time", "more time"),
            Unit::Kib => ("less memory", "more memory"),
        };
        match (&self.cells[subject], self.noise) {
            (Cell::Wrong, _) => "WRONG".into(),
            (Cell::Absent, _) => "not run".into(),
            (Cell::Measured { ratio: None, .. }, _) | (_, None) => "nothing to compare with".into(),
            _ if no_claim(self.runs()).is_some() => no_claim(self.runs()).unwrap_or_default().into(),
            (Cell::Measured { ratio: Some(ratio), .. }, Some(noise)) if (ratio - 1.0).abs() <= noise => {
                "no difference seen".into()
            }
            (Cell::Measured { ratio: Some(ratio), .. }, _) => {
                format!("{:.1}% {}", (ratio - 1.0).abs() * 100.0, if *ratio < 1.0 { less } else { more })
            }
        }
    }
}

impl<'a> Outcome<'a> {
    /// Judges every answer, then compares the times of right ones.
    pub(super) fn of(
        bench: &'a Bench,
        scale: f64,
        contestants: Vec<Contestant<'a>>,
        samples: &[Samples],
    ) -> Outcome<'a> {
        let mut failures = Vec::new();
        for (one, sample) in contestants.iter().zip(samples) {
            if let Some(why) = &sample.failure {
                failures.push(format!("{}: could not run under {}: {why}", bench.name, one.name()));
            }
        }
        let baseline = samples.first().and_then(|sample| sample.runs.first());
        let mut columns: Vec<Vec<Result<Vec<f64>, Cell>>> = Vec::new();
        for (one, sample) in contestants.iter().zip(samples) {
            let seconds = |test: &str| -> Result<Vec<f64>, String> {
                let Some(baseline) = baseline else { return Ok(Vec::new()) };
                let judged = sample.runs.iter().map(|run| judge(bench, test, scale, run, baseline));
                judged
                    .map(|right| right.map(|measured| measured.seconds).map_err(|wrong| wrong.to_string()))
                    .collect()
            };
            let mut column = Vec::new();
            for test in &bench.tests {
                column.push(match seconds(&test.name) {
                    _ if sample.failure.is_some() || sample.runs.is_empty() => Err(Cell::Absent),
                    Ok(seconds) => Ok(seconds),
                    Err(why) => {
                        failures.push(format!(
                            "WRONG: {}/{} under {}: {why}",
                            bench.name,
                            test.name,
                            one.name()
                        ));
                        Err(Cell::Wrong)
                    }
                });
            }
            column.push(total(&column));
            let absent = sample.failure.is_some() || sample.runs.is_empty();
            column.push(if absent {
                Err(Cell::Absent)
            } else {
                Ok(sample.runs.iter().map(|run| run.peak.kib()).collect())
            });
            columns.push(column);
        }
        let names =
            bench.tests.iter().map(|test| test.name.clone()).chain(["total".into(), "peak memory".into()]);
        let lines = names.enumerate().map(|(row, name)| {
            let unit = if row > bench.tests.len() { Unit::Kib } else { Unit::Seconds };
            line(name, unit, &columns.iter().map(|column| &column[row]).collect::<Vec<_>>())
        });
        let about = baseline.map(|run| run.peak.about.clone()).unwrap_or_default();
        Outcome { bench, lines: lines.collect(), contestants, failures, about }
    }

    /// Returns the index of the contestant that is judged, or of the baseline if there is none.
    pub(super) fn subject(&self) -> usize {
        self.contestants.iter().position(|one| one.setting.role == Role::Subject).unwrap_or(0)
    }
}

/// Returns the sum of each run's tests; a wrong test makes the sum wrong.
fn total(tests: &[Result<Vec<f64>, Cell>]) -> Result<Vec<f64>, Cell> {
    let mut sums: Vec<f64> = Vec::new();
    for test in tests {
        let seconds = test.as_ref().map_err(|cell| *cell)?;
        sums.resize(seconds.len(), 0.0);
        sums.iter_mut().zip(seconds).for_each(|(sum, one)| *sum += one);
    }
    Ok(sums)
}

/// Makes a line of `columns`, of which the first two are the baseline and its second series of runs.
fn line(name: String, unit: Unit, columns: &[&Result<Vec<f64>, Cell>]) -> TableLine {
    let values = |place: usize| columns.get(place).and_then(|column| column.as_ref().ok());
    let baseline = values(0).and_then(|values| Summary::of(values));
    let cell = |column: &&Result<Vec<f64>, Cell>| match column {
        Err(cell) => *cell,
        Ok(values) => match Summary::of(values) {
            None => Cell::Absent,
            Some(summary) => {
                let ratio =
                    baseline.filter(|first| first.median > 0.0).map(|first| summary.median / first.median);
                Cell::Measured { summary, ratio }
            }
        },
    };
    let noise = values(0).zip(values(1)).and_then(|(first, again)| noise(first, again));
    TableLine { name, unit, cells: columns.iter().map(cell).collect(), noise }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::definition::{read_all, tests::shipped};
    use super::super::runner::tests::run_of;
    use super::super::settings::Settings;
    use super::*;

    const BITS: &str = "aa";

    /// Gives `look` the outcome of `fifteen/toeplitz` if each contestant took `seconds` and printed `bits`.
    pub(in super::super) fn with_outcome<T>(
        samples: &[(&[f64], &str)],
        look: impl FnOnce(&Outcome<'_>) -> T,
    ) -> T {
        let mut bench =
            read_all(&shipped()).unwrap().into_iter().find(|bench| bench.name == "fifteen").unwrap();
        bench.tests.retain(|test| test.name == "toeplitz");
        bench.tests[0].expect = [("1".into(), vec![7.0])].into();
        let settings = Settings::read(&shipped()).unwrap();
        let mut contestants = Contestant::line_up(&settings.of(&bench, true).unwrap());
        contestants.truncate(samples.len());
        let samples: Vec<_> = samples
            .iter()
            .map(|(seconds, bits)| Samples {
                runs: seconds.iter().map(|&seconds| run_of("toeplitz", seconds, 7.0, bits)).collect(),
                failure: seconds.is_empty().then(|| "it fell over".into()),
            })
            .collect();
        look(&Outcome::of(&bench, 1.0, contestants, &samples))
    }

    #[track_caller]
    fn check(largesse: (&[f64], &str), reading: &str, failures: usize) {
        let stock = &[1.0, 1.0, 1.01][..];
        with_outcome(&[(stock, BITS), (&[1.0, 1.02, 1.02], BITS), largesse], |outcome| {
            assert_eq!(outcome.lines[0].reading(outcome.subject()), reading);
            assert_eq!(outcome.failures.len(), failures, "{:?}", outcome.failures);
        });
    }

    #[test]
    fn the_reading_claims_only_what_is_above_the_noise() {
        check((&[0.8, 0.8, 0.8], BITS), "20.0% less time", 0);
        check((&[1.1, 1.1, 1.1], BITS), "10.0% more time", 0);
        check((&[0.99, 0.99, 0.99], BITS), "no difference seen", 0);
    }

    #[test]
    fn fewer_than_three_runs_claim_nothing() {
        check((&[8.187], BITS), "one run: no claim", 0);
        check((&[0.5, 0.5], BITS), "two runs: no claim", 0);
    }

    #[test]
    fn a_wrong_or_absent_answer_has_no_ratio() {
        check((&[0.1, 0.1, 0.1], "ab"), "WRONG", 1);
        check((&[], BITS), "not run", 1);
    }

    #[test]
    fn a_wrong_test_makes_the_total_wrong() {
        with_outcome(&[(&[1.0], BITS), (&[1.0], BITS), (&[0.5], "ab")], |outcome| {
            assert_eq!((outcome.lines[1].name.as_str(), outcome.lines[1].cells[2]), ("total", Cell::Wrong));
        });
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_smallest_ratio() {
        let samples = [1.0, 1.0, 0.5, 0.9, 0.7, 0.8].map(|seconds| vec![seconds]);
        let samples: Vec<_> = samples.iter().map(|seconds| (&seconds[..], BITS)).collect();
        with_outcome(&samples, |outcome| {
            let (place, ratio) = outcome.lines[0].best_peer(&outcome.contestants).unwrap();
            assert_eq!((outcome.contestants[place].name().as_str(), ratio), ("jemalloc-thp", 0.7));
        });
    }
}
