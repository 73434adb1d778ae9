//! What the rounds found: times of one repetition, gains, and the share of collections.

use super::super::stats::Summary;
use super::definition::Program;
use super::pauses::Pauses;
use super::rounds::{Line, Miss, Place, Sample};

/// A program that was run.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) program: &'a Program,
    pub(super) rows: Vec<Row<'a>>,
    /// Wrong answers and systems that could not run.
    pub(super) troubles: Vec<String>,
}

/// One system.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) system: &'a str,
    /// Its version.
    pub(super) about: String,
    /// Repetitions of each thread.
    pub(super) times: u64,
    /// By the number of threads; the first is one.
    pub(super) cells: Vec<(u32, Cell)>,
    /// Of all rounds, for each of the cells.
    pub(super) pauses: Vec<Pauses>,
}

/// One number of threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell {
    Measured {
        /// Seconds of one repetition.
        each: Summary,
        /// p T(1) / T(p), in each round.
        gain: Summary,
        /// Of the time.
        gc_share: Option<Summary>,
    },
    Stopped,
    Wrong,
    Failed,
}

impl Row<'_> {
    /// Seconds of one repetition by one thread.
    pub(super) fn alone(&self) -> Option<Summary> {
        match self.cells.first() {
            Some((_, Cell::Measured { each, .. })) => Some(*each),
            _ => None,
        }
    }
}

impl<'a> Outcome<'a> {
    pub(super) fn of(program: &'a Program, lines: &[Line<'a>]) -> Outcome<'a> {
        let mut troubles = Vec::new();
        for line in lines {
            for place in &line.places {
                let who = format!("{}, {}, threads: {}", program.name, line.system.name, place.threads);
                match &place.miss {
                    Some(Miss::Wrong(why)) => troubles.push(format!("WRONG: {who}: {why}")),
                    Some(Miss::Failed(why)) => troubles.push(format!("{who}: could not run: {why}")),
                    Some(Miss::Stopped) | None => {}
                }
            }
        }
        Outcome { program, rows: lines.iter().map(row).collect(), troubles }
    }

    /// One thread's time of `row`, over that of the system `reference`; none of itself.
    pub(super) fn to_reference(&self, row: &Row<'_>, reference: &str) -> Option<f64> {
        let other = self.rows.iter().find(|other| other.system == reference)?.alone()?;
        let alone = row.alone().filter(|_| row.system != reference)?;
        Some(alone.median / other.median)
    }
}

fn row<'a>(line: &Line<'a>) -> Row<'a> {
    let one = &line.places[0];
    let cell = |place: &Place| match place.miss.as_ref().or(one.miss.as_ref()) {
        Some(Miss::Stopped) => Cell::Stopped,
        Some(Miss::Wrong(_)) => Cell::Wrong,
        Some(Miss::Failed(_)) => Cell::Failed,
        None => measured(line.times, place.threads, &one.samples, &place.samples),
    };
    Row {
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

    /// Seconds of each round, and what of them were collections; or why there are none.
    type Times<'a> = Result<&'a [(f64, f64)], Miss>;
    /// By system and number of threads.
    pub(in super::super) type Rows<'a> = [(&'a str, &'a [Times<'a>])];

    /// The outcome of copy-seq, 1000 times, where each system took so long with 1, 2, … threads.
    pub(in super::super) fn with_outcome<T>(
        systems: &Rows<'_>,
        look: impl FnOnce(&Definition, &Outcome<'_>) -> T,
    ) -> T {
        let definition = ours();
        let program = definition.programs.iter().find(|it| it.name == "copy-seq").unwrap();
        let sample = |&(seconds, collecting): &(f64, f64)| Sample {
            seconds,
            gc_seconds: Some(collecting),
            pauses: Pauses::of(&[(1000.0, 3), (9000.0, 1)], Some((2e6, 0.5))),
            about: "1.0".into(),
        };
        let place = |(threads, times): (u32, &Times<'_>)| Place {
            threads,
            samples: times.as_ref().map(|it| it.iter().map(sample).collect()).unwrap_or_default(),
            miss: times.clone().err(),
        };
        let line = |(name, places): &(&str, &[Times<'_>])| Line {
            system: definition.systems.iter().find(|it| it.name == *name).unwrap(),
            times: 1000,
            places: (1..).zip(places.iter()).map(place).collect(),
        };
        let lines: Vec<_> = systems.iter().map(line).collect();
        look(&definition, &Outcome::of(program, &lines))
    }

    #[track_caller]
    fn check(places: &[Times<'_>], cells: &[Result<(f64, f64, f64), Cell>], troubles: usize) {
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
            assert_eq!(outcome.troubles.len(), troubles, "{:?}", outcome.troubles);
        });
    }

    #[test]
    fn the_gain_is_what_each_thread_does_in_the_time_of_one() {
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
    fn what_was_missed_has_no_gain_and_without_one_thread_nobody_has() {
        let one = Ok(&[(1.0, 0.0)][..]);
        let wrong = || Err(Miss::Wrong("1 is not 2".into()));
        check(&[one.clone(), Err(Miss::Stopped)], &[Ok((1e-3, 1.0, 0.0)), Err(Cell::Stopped)], 0);
        check(&[one.clone(), wrong()], &[Ok((1e-3, 1.0, 0.0)), Err(Cell::Wrong)], 1);
        check(&[Err(Miss::Failed("no such file".into())), Ok(&[])], &[Err(Cell::Failed); 2], 1);
        check(&[wrong(), one], &[Err(Cell::Wrong); 2], 1);
    }

    #[test]
    fn one_threads_time_is_compared_with_the_references() {
        let (ours, theirs) = ([Ok(&[(1.0, 0.0)][..])], [Ok(&[(4.0, 0.0)][..])]);
        with_outcome(&[("mutex", &ours), ("euslisp", &theirs)], |definition, outcome| {
            let ratio = |row| outcome.to_reference(&outcome.rows[row], &definition.reference);
            assert_eq!([ratio(0), ratio(1)], [Some(0.25), None]);
        });
    }
}
