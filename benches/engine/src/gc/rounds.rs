//! Runs one program: finds each system's number of repetitions, then runs all systems and numbers of threads in
//! turns.

use super::super::runner::{Ended, Run, run_within, turns};
use super::super::verdict::answered;
use super::super::{Args, warm};
use super::builder::Builder;
use super::definition::{Definition, GcProgram, System};
use super::pauses::Pauses;
use super::{CAP, RUNS};
use largesse_terminal::progress::Progress;
use std::time::Duration;

/// Greatest number of runs to find out how many repetitions take the wanted time.
const TRIES: u32 = 4;

/// The way a comparison is run.
#[derive(Debug)]
pub(super) struct GcPlan<'a> {
    pub(super) definition: &'a Definition,
    /// Numbers of threads, ascending; the first is 1.
    pub(super) threads: Vec<u32>,
    pub(super) runs: usize,
    /// Seconds that a run of one thread is to take.
    seconds: f64,
    cap: Duration,
    touch_mib: u64,
}

/// The results of one run.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    pub(super) gc_seconds: Option<f64>,
    pub(super) pauses: Pauses,
    /// Version of the system.
    pub(super) about: String,
}

/// The reason why a run has no time.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Failure {
    Stopped,
    Wrong(String),
    Failed(String),
}

/// The runs with one number of threads: a sample of each round, until one failed.
#[derive(Debug)]
pub(super) struct ThreadRuns {
    pub(super) threads: u32,
    pub(super) samples: Vec<Sample>,
    pub(super) failure: Option<Failure>,
}

/// The runs of one system.
#[derive(Debug)]
pub(super) struct SystemRuns<'a> {
    pub(super) system: &'a System,
    /// Repetitions of each thread in each run.
    pub(super) times: u64,
    /// Runs by the number of threads. The first is one thread, without which the others do not run.
    pub(super) places: Vec<ThreadRuns>,
}

impl SystemRuns<'_> {
    pub(super) fn about(&self) -> &str {
        let mut samples = self.places.iter().flat_map(|place| &place.samples);
        samples.next().map_or("", |sample| &sample.about)
    }

    fn goes_on(&self, place: usize) -> bool {
        self.places[0].failure.is_none() && self.places[place].failure.is_none()
    }
}

/// A run that succeeded, for the caller to print.
#[derive(Debug)]
pub(super) struct SuccessfulRun<'a> {
    pub(super) program: &'a GcProgram,
    pub(super) system: &'a System,
    pub(super) threads: u32,
    pub(super) times: u64,
    pub(super) round: usize,
    pub(super) run: Run,
}

impl<'a> GcPlan<'a> {
    pub(super) fn of(definition: &'a Definition, args: &Args) -> GcPlan<'a> {
        GcPlan {
            definition,
            threads: threads(args.threads.as_deref(), processors()),
            runs: args.runs.unwrap_or(RUNS) as usize,
            seconds: definition.seconds * args.scale,
            cap: Duration::from_secs(args.cap.unwrap_or(CAP).into()),
            touch_mib: args.touch.unwrap_or(definition.touch_mib),
        }
    }

    /// Returns the number of runs of one program by `systems` systems.
    pub(super) fn steps(&self, systems: usize) -> u64 {
        (systems * (1 + self.runs * self.threads.len())) as u64
    }

    /// Runs all rounds of `program`.
    pub(super) fn run(
        &self,
        program: &'a GcProgram,
        systems: &[&'a System],
        builder: &Builder,
        progress: &Progress,
        tell: impl Fn(&SuccessfulRun<'_>),
    ) -> Vec<SystemRuns<'a>> {
        let mut lines: Vec<_> = systems
            .iter()
            .map(|system| {
                progress.at(format!("{}, {}: its answer", program.name, system.name));
                let line = self.prepared(program, system, builder);
                progress.step();
                line
            })
            .collect();
        for round in 0..self.runs {
            for turn in turns(lines.len() * self.threads.len(), round) {
                // All systems run with one thread, then all with the next number.
                let (place, line) = (turn / systems.len(), turn % systems.len());
                let (threads, line) = (self.threads[place], &mut lines[line]);
                let (system, times) = (line.system, line.times);
                if line.goes_on(place) {
                    progress.at(format!("{}, {}, {threads} threads", program.name, system.name));
                    match self.measure(program, system, threads, times, builder) {
                        Ok((sample, run)) => {
                            tell(&SuccessfulRun { program, system, threads, times, round, run });
                            line.places[place].samples.push(sample);
                        }
                        Err(failure) => line.places[place].failure = Some(failure),
                    }
                }
                progress.step();
            }
        }
        lines
    }

    /// Runs one thread untimed, to check the answer and to find the number of repetitions.
    fn prepared(&self, program: &GcProgram, system: &'a System, builder: &Builder) -> SystemRuns<'a> {
        let place = |&threads| ThreadRuns { threads, samples: Vec::new(), failure: None };
        let mut line =
            SystemRuns { system, times: program.times, places: self.threads.iter().map(place).collect() };
        for _ in 0..TRIES {
            match self.measure(program, system, 1, line.times, builder) {
                Ok((sample, _)) => {
                    let share = self.seconds / sample.seconds.max(1e-6);
                    line.times = times(line.times, share);
                    if (0.5..=2.0).contains(&share) {
                        break;
                    }
                }
                Err(failure) => {
                    line.places[0].failure = Some(failure);
                    break;
                }
            }
        }
        line
    }

    fn measure(
        &self,
        program: &GcProgram,
        system: &System,
        threads: u32,
        times: u64,
        builder: &Builder,
    ) -> Result<(Sample, Run), Failure> {
        warm::touch_mib(self.touch_mib).map_err(Failure::Failed)?;
        let command = builder.command(system, program, threads, times);
        let (run, _) = run_within(command, self.cap).map_err(|ended| match ended {
            Ended::Stopped => Failure::Stopped,
            Ended::Failed(why) => Failure::Failed(why),
        })?;
        let expected = vec![program.answer; threads as usize];
        let right = answered(&run, &program.name, Some((&expected, self.definition.tolerance)));
        let right = right.map_err(|wrong| Failure::Wrong(wrong.to_string()))?;
        let (seconds, gc_seconds) = (right.seconds, right.gc_seconds);
        let pauses = Pauses::of(&right.pauses, right.marked);
        Ok((Sample { seconds, gc_seconds, pauses, about: run.peak.about.clone() }, run))
    }
}

pub(super) fn processors() -> u32 {
    let here = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(here).unwrap_or(u32::MAX)
}

/// Returns the numbers of threads `asked` for, else powers of two up to 16 and to twice as many as there are
/// processors: with more, the others only wait.
fn threads(asked: Option<&[u32]>, processors: u32) -> Vec<u32> {
    let usual = [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads <= processors.saturating_mul(2));
    let mut threads = asked.map_or_else(|| usual.collect(), <[u32]>::to_vec);
    // Every gain is relative to one thread.
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
    // A run that took almost no time says little about the number of repetitions.
    ((before as f64 * share.clamp(0.001, 1000.0)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_is_always_run() {
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
