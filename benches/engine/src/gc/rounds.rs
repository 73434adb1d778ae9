//! One program: how often each system repeats it, then rounds of all systems and numbers of threads, in turns.

use super::super::runner::{Ended, Run, run_within, turns};
use super::super::verdict::answered;
use super::super::{Args, warm};
use super::definition::{Definition, Program, System};
use super::pauses::Pauses;
use super::workshop::Workshop;
use super::{CAP, RUNS};
use largesse_terminal::progress::Progress;
use std::time::Duration;

/// Runs to find out how many repetitions take the time that is wanted.
const TRIES: u32 = 4;

/// How a comparison is run.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) definition: &'a Definition,
    /// Ascending; the first is 1.
    pub(super) threads: Vec<u32>,
    pub(super) runs: usize,
    /// Of one thread.
    seconds: f64,
    cap: Duration,
    touch_mib: u64,
}

/// What one run said.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    pub(super) gc_seconds: Option<f64>,
    pub(super) pauses: Pauses,
    /// The system's version.
    pub(super) about: String,
}

/// Why there is no time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Miss {
    Stopped,
    Wrong(String),
    Failed(String),
}

/// A number of threads: a sample of each round, until one was missed.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) threads: u32,
    pub(super) samples: Vec<Sample>,
    pub(super) miss: Option<Miss>,
}

/// What one system did.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) system: &'a System,
    /// Repetitions of each thread in each run.
    pub(super) times: u64,
    /// The first is one thread, without which the others are nothing.
    pub(super) places: Vec<Place>,
}

impl Line<'_> {
    pub(super) fn about(&self) -> &str {
        let mut samples = self.places.iter().flat_map(|place| &place.samples);
        samples.next().map_or("", |sample| &sample.about)
    }

    fn goes_on(&self, place: usize) -> bool {
        self.places[0].miss.is_none() && self.places[place].miss.is_none()
    }
}

/// A run that ended well, as it is told.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) program: &'a Program,
    pub(super) system: &'a System,
    pub(super) threads: u32,
    pub(super) times: u64,
    pub(super) round: usize,
    pub(super) run: Run,
}

impl<'a> Plan<'a> {
    pub(super) fn of(definition: &'a Definition, args: &Args) -> Plan<'a> {
        Plan {
            definition,
            threads: threads(args.threads.as_deref(), processors()),
            runs: args.runs.unwrap_or(RUNS) as usize,
            seconds: definition.seconds * args.scale,
            cap: Duration::from_secs(args.cap.unwrap_or(CAP).into()),
            touch_mib: args.touch.unwrap_or(definition.touch_mib),
        }
    }

    /// Runs of `program` by so many systems.
    pub(super) fn steps(&self, systems: usize) -> u64 {
        (systems * (1 + self.runs * self.threads.len())) as u64
    }

    /// All rounds of `program`.
    pub(super) fn run(
        &self,
        program: &'a Program,
        systems: &[&'a System],
        workshop: &Workshop,
        progress: &Progress,
        tell: impl Fn(&Told<'_>),
    ) -> Vec<Line<'a>> {
        let mut lines: Vec<_> = systems
            .iter()
            .map(|system| {
                progress.at(format!("{}, {}: its answer", program.name, system.name));
                let line = self.prepared(program, system, workshop);
                progress.step();
                line
            })
            .collect();
        for round in 0..self.runs {
            for turn in turns(lines.len() * self.threads.len(), round) {
                // All systems with one thread, then all with the next number.
                let (place, line) = (turn / systems.len(), turn % systems.len());
                let (threads, line) = (self.threads[place], &mut lines[line]);
                let (system, times) = (line.system, line.times);
                if line.goes_on(place) {
                    progress.at(format!("{}, {}, {threads} threads", program.name, system.name));
                    match self.measure(program, system, threads, times, workshop) {
                        Ok((sample, run)) => {
                            tell(&Told { program, system, threads, times, round, run });
                            line.places[place].samples.push(sample);
                        }
                        Err(miss) => line.places[place].miss = Some(miss),
                    }
                }
                progress.step();
            }
        }
        lines
    }

    /// One thread, untimed: whether the answer is right, and how many repetitions there will be.
    fn prepared(&self, program: &Program, system: &'a System, workshop: &Workshop) -> Line<'a> {
        let place = |&threads| Place { threads, samples: Vec::new(), miss: None };
        let mut line =
            Line { system, times: program.times, places: self.threads.iter().map(place).collect() };
        for _ in 0..TRIES {
            match self.measure(program, system, 1, line.times, workshop) {
                Ok((sample, _)) => {
                    let share = self.seconds / sample.seconds.max(1e-6);
                    line.times = times(line.times, share);
                    if (0.5..=2.0).contains(&share) {
                        break;
                    }
                }
                Err(miss) => {
                    line.places[0].miss = Some(miss);
                    break;
                }
            }
        }
        line
    }

    fn measure(
        &self,
        program: &Program,
        system: &System,
        threads: u32,
        times: u64,
        workshop: &Workshop,
    ) -> Result<(Sample, Run), Miss> {
        warm::touch_mib(self.touch_mib).map_err(Miss::Failed)?;
        let command = workshop.command(system, program, threads, times);
        let (run, _) = run_within(command, self.cap).map_err(|ended| match ended {
            Ended::Stopped => Miss::Stopped,
            Ended::Failed(why) => Miss::Failed(why),
        })?;
        let expected = vec![program.answer; threads as usize];
        let right = answered(&run, &program.name, Some((&expected, self.definition.tolerance)));
        let right = right.map_err(|wrong| Miss::Wrong(wrong.to_string()))?;
        let (seconds, gc_seconds) = (right.seconds, right.gc_seconds);
        let pauses = Pauses::of(&right.pauses, right.marked);
        Ok((Sample { seconds, gc_seconds, pauses, about: run.peak.about.clone() }, run))
    }
}

pub(super) fn processors() -> u32 {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(here).unwrap_or(u32::MAX)
}

/// Those that were asked for, else powers of two up to the paper's 16, and to twice as many as there are processors: beyond that
/// all do nothing but wait.
fn threads(asked: Option<&[u32]>, processors: u32) -> Vec<u32> {
    let usual = [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads <= processors.saturating_mul(2));
    let mut threads = asked.map_or_else(|| usual.collect(), <[u32]>::to_vec);
    // What every gain is to.
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    threads
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "repetitions of a fraction of a second"
)]
fn times(before: u64, share: f64) -> u64 {
    // A run that took next to no time says little.
    ((before as f64 * share.clamp(0.001, 1000.0)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_always_among_them_and_too_many_only_when_asked_for() {
        assert_eq!(threads(None, 1), [1, 2]);
        assert_eq!(threads(None, 2), [1, 2, 4]);
        assert_eq!(threads(None, 192), [1, 2, 4, 8, 16]);
        assert_eq!(threads(Some(&[16, 3, 3]), 2), [1, 3, 16]);
    }

    #[test]
    fn repetitions_follow_the_time() {
        assert_eq!((times(100, 0.5), times(3, 1e9), times(1, 1e-9)), (50, 3000, 1));
    }
}
