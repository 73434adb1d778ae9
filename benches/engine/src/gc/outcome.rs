//! Compares the samples: times of one repetition, gains, and the share of collections.

use super::super::stats::Summary;
use super::definition::GcProgram;
use super::pauses::Pauses;
use super::rounds::{Failure, Sample, SystemRuns, ThreadRuns};

/// The results of one program.
#[derive(Debug)]
pub(super) struct GcOutcome<'a> {
    pub(super) program: &'a GcProgram,
    pub(super) rows: Vec<SystemRow<'a>>,
    /// Messages on wrong answers and systems that could not run.
    pub(super) failures: Vec<String>,
}

/// The results of one system.
#[derive(Debug)]
pub(super) struct SystemRow<'a> {
    pub(super) system: &'a str,
    /// Version of the system.
    pub(super) about: String,
    /// Repetitions of each thread.
    pub(super) times: u64,
    /// Cells by the number of threads; the first is for one thread.
    pub(super) cells: Vec<(u32, Cell)>,
    /// Pauses of all rounds, for each of the cells.
    pub(super) pauses: Vec<Pauses>,
}

/// The result with one number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Measured {
        /// Seconds of one repetition.
        each: Summary,
        /// Gain p T(1) / T(p) with p threads, in each round.
        gain: Summary,
        /// Share of the time that collections take.
        gc_share: Option<Summary>,
    },
    Stopped,
    Wrong,
    Failed,
}

impl SystemRow<'_> {
    /// Returns the seconds of one repetition by one thread.
    pub(super) fn alone(&self) -> Option<Summary> {
        match self.cells.first() {
            Some((_, Cell::Measured { each, .. })) => Some(*each),
            _ => None,
        }
    }
}

impl<'a> GcOutcome<'a> {
    pub(super) fn of(program: &'a GcProgram, lines: &[SystemRuns<'a>]) -> GcOutcome<'a> {
        let mut failures = Vec::new();
        for line in lines {
            for place in &line.places {
                let who = format!("{}, {}, threads: {}", program.name, line.system.name, place.threads);
                match &place.failure {
                    Some(Failure::Wrong(why)) => failures.push(format!("WRONG: {who}: {why}")),
                    Some(Failure::Failed(why)) => failures.push(format!("{who}: could not run: {why}")),
                    Some(Failure::Stopped) | None => {}
                }
            }
        }
        GcOutcome { program, rows: lines.iter().map(row).collect(), failures }
    }

    /// Returns the time of `row` with one thread divided by that of the system `reference`; `None` for that system
    /// itself.
    pub(super) fn to_reference(&self, row: &SystemRow<'_>, reference: &str) -> Option<f64> {
        let other = self.rows.iter().find(|other| other.system == reference)?.alone()?;
        let alone = row.alone().filter(|_| row.system != reference)?;
        Some(alone.median / other.median)
    }
}

fn row<'a>(line: &SystemRuns<'a>) -> SystemRow<'a> {
    let one = &line.places[0];
    let cell = |place: &ThreadRuns| match place.failure.as_ref().or(one.failure.as_ref()) {
        Some(Failure::Stopped) => Cell::Stopped,
        Some(Failure::Wrong(_)) => Cell::Wrong,
        Some(Failure::Failed(_)) => Cell::Failed,
        None => measured(line.times, place.threads, &one.samples, &place.samples),
    };
    SystemRow {
        system: &line.system.name,
        about: line.about().to_owned(),
        times: line.times,
        cells: line.places.iter().map(|place| (place.threads, cell(place))).collect(),
        pauses: line.places.iter().map(|place| place.samples.iter().map(|it| &it.pauses).sum()).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "repetitions of a fraction of a second")]
fn measured(times: u64, threads: u32, one: &[Sample], samples: &[Sample]) -> Cell {
    let each: Vec<_> = samples.iter().map(|sample| sample.seconds / times as f64).collect();
    let rounds = one.iter().zip(samples);
    let gains: Vec<_> =
        rounds.map(|(one, sample)| f64::from(threads) * one.seconds / sample.seconds).collect();
    let shares: Option<Vec<_>> =
        samples.iter().map(|sample| sample.gc_seconds.map(|seconds| seconds / sample.seconds)).collect();
    match (Summary::of(&each), Summary::of(&gains)) {
        (Some(each), Some(gain)) => {
            Cell::Measured { each, gain, gc_share: shares.and_then(|shares| Summary::of(&shares)) }
        }
        _ => Cell::Failed,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::definition::{Definition, tests::ours};
    use super::*;

    /// Seconds of each round and of its collections, or why there are none.
    type Times<'a> = Result<&'a [(f64, f64)], Failure>;
    /// Times by system and number of threads.
    pub(in super::super) type Rows<'a> = [(&'a str, &'a [Times<'a>])];

    /// Gives `look` the outcome of copy-seq, repeated 1000 times, if each system took these times with 1, 2, …
    /// threads.
    pub(in super::super) fn with_outcome<T>(
        systems: &Rows<'_>,
        look: impl FnOnce(&Definition, &GcOutcome<'_>) -> T,
    ) -> T {
        let definition = ours();
        let program = definition.programs.iter().find(|it| it.name == "copy-seq").unwrap();
        let sample = |&(seconds, collecting): &(f64, f64)| Sample {
            seconds,
            gc_seconds: Some(collecting),
            pauses: Pauses::of(&[(1000.0, 3), (9000.0, 1)], Some((2e6, 0.5))),
            about: "1.0".into(),
        };
        let place = |(threads, times): (u32, &Times<'_>)| ThreadRuns {
            threads,
            samples: times.as_ref().map(|it| it.iter().map(sample).collect()).unwrap_or_default(),
            failure: times.clone().err(),
        };
        let line = |(name, places): &(&str, &[Times<'_>])| SystemRuns {
            system: definition.systems.iter().find(|it| it.name == *name).unwrap(),
            times: 1000,
            places: (1..).zip(places.iter()).map(place).collect(),
        };
        let lines: Vec<_> = systems.iter().map(line).collect();
        look(&definition, &GcOutcome::of(program, &lines))
    }

    #[track_caller]
    fn check(places: &[Times<'_>], cells: &[Result<(f64, f64, f64), Cell>], failures: usize) {
        with_outcome(&[("mutex", places)], |_, outcome| {
            for ((_, cell), wanted) in outcome.rows[0].cells.iter().zip(cells) {
                let found = match cell {
                    Cell::Measured { each, gain, gc_share } => {
                        Ok((each.median, gain.median, gc_share.unwrap().median))
                    }
                    other => Err(*other),
                };
                assert_eq!(found, *wanted);
            }
            assert_eq!(outcome.failures.len(), failures, "{:?}", outcome.failures);
        });
    }

    #[test]
    fn gain_counts_the_work_of_all_threads() {
        let places = [Ok(&[(1.0, 0.25)][..]), Ok(&[(1.0, 0.5)]), Ok(&[(6.0, 0.0)])];
        check(&places, &[Ok((1e-3, 1.0, 0.25)), Ok((1e-3, 2.0, 0.5)), Ok((6e-3, 0.5, 0.0))], 0);
    }

    #[test]
    fn gains_are_of_each_round() {
        // The machine was twice as fast in the second round.
        let places = [Ok(&[(1.0, 0.0), (0.5, 0.0)][..]), Ok(&[(2.0, 0.0), (1.0, 0.0)])];
        check(&places, &[Ok((0.75e-3, 1.0, 0.0)), Ok((1.5e-3, 1.0, 0.0))], 0);
    }

    #[test]
    fn failed_runs_have_no_gain() {
        let one = Ok(&[(1.0, 0.0)][..]);
        let wrong = || Err(Failure::Wrong("1 is not 2".into()));
        check(&[one.clone(), Err(Failure::Stopped)], &[Ok((1e-3, 1.0, 0.0)), Err(Cell::Stopped)], 0);
        check(&[one.clone(), wrong()], &[Ok((1e-3, 1.0, 0.0)), Err(Cell::Wrong)], 1);
        check(&[Err(Failure::Failed("no such file".into())), Ok(&[])], &[Err(Cell::Failed); 2], 1);
        check(&[wrong(), one], &[Err(Cell::Wrong); 2], 1);
    }

    #[test]
    fn one_threads_time_is_compared_with_the_reference() {
        let (ours, theirs) = ([Ok(&[(1.0, 0.0)][..])], [Ok(&[(4.0, 0.0)][..])]);
        with_outcome(&[("mutex", &ours), ("euslisp", &theirs)], |definition, outcome| {
            let ratio = |row| outcome.to_reference(&outcome.rows[row], &definition.reference);
            assert_eq!([ratio(0), ratio(1)], [Some(0.25), None]);
        });
    }
}
