//! Runs one bench: chooses its contestants on this machine, and runs them in rounds.

use super::definition::Bench;
use super::error::Error;
use super::outcome::{Outcome, Samples};
use super::runner::{Contestant, Run, run, turns};
use super::settings::{Role, Settings};
use super::{Args, machine, warm};
use largesse_terminal::progress::Progress;
use std::path::Path;

/// Default number of runs of each program under each setting.
pub(super) const RUNS: u32 = 5;

/// A bench and the way it is run.
#[derive(Debug)]
pub(super) struct BenchPlan<'a> {
    pub(super) bench: &'a Bench,
    contestants: Vec<Contestant<'a>>,
    /// Names of settings that are not possible here, with the reason.
    absent: Vec<(String, String)>,
    runs: usize,
    times: u32,
    scale: f64,
    touch_mib: Option<u64>,
}

/// An event during a bench, for the caller to print.
#[derive(Debug)]
pub(super) enum Event<'a> {
    Run {
        contestant: &'a Contestant<'a>,
        round: usize,
        run: &'a Run,
    },
    /// A setting cannot run; without a setting, the whole bench cannot.
    Absent {
        setting: Option<&'a str>,
        why: &'a str,
    },
}

impl<'a> BenchPlan<'a> {
    pub(super) fn of(bench: &'a Bench, settings: &'a Settings, args: &Args) -> Result<BenchPlan<'a>, Error> {
        let mut absent = Vec::new();
        let mut chosen = settings.of(bench, args.peers)?;
        chosen.retain(|setting| match settings.missing(setting) {
            Some(why) => {
                absent.push((setting.name.clone(), why));
                false
            }
            None => true,
        });
        Ok(BenchPlan {
            bench,
            contestants: Contestant::line_up(&chosen),
            absent,
            runs: args.runs.unwrap_or(RUNS) as usize,
            times: args.times.unwrap_or(1),
            scale: args.scale,
            touch_mib: args.touch,
        })
    }

    /// Returns the number of runs.
    pub(super) fn steps(&self) -> u64 {
        (self.runs * self.contestants.len()) as u64
    }

    /// Returns name and title of the peers that are installed.
    pub(super) fn peers(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let settings = self.contestants.iter().map(|one| one.setting);
        let peers = settings.filter(|setting| setting.role == Role::Peer);
        peers.map(|setting| (setting.name.as_str(), setting.title.as_str()))
    }

    /// Runs all rounds; returns `None` if this machine has too little memory.
    pub(super) fn run(
        &self,
        settings: &Settings,
        root: &Path,
        progress: &Progress,
        tell: impl Fn(&Event<'_>),
    ) -> Option<Outcome<'a>> {
        for (setting, why) in &self.absent {
            tell(&Event::Absent { setting: Some(setting), why });
        }
        let (needed, available) = (self.bench.needed_mib(self.scale), machine::available_mib());
        if needed > available {
            let why = format!("needs {needed} MiB of memory; {available} MiB are available");
            tell(&Event::Absent { setting: None, why: &why });
            return None;
        }
        let words = self.bench.words(root, self.scale, Some(self.times));
        let mut samples: Vec<_> = self.contestants.iter().map(|_| Samples::default()).collect();
        for round in 0..self.runs {
            for place in turns(self.contestants.len(), round) {
                let contestant = &self.contestants[place];
                if samples[place].failure.is_none() && self.baseline_stands(&samples) {
                    progress.at(format!("{}, {}", self.bench.name, contestant.name()));
                    let mut command = settings.command(contestant.setting, &[], &words);
                    command.env(warm::COMMAND, self.touch_command());
                    let done = self.warm_up().and_then(|()| run(command));
                    match done {
                        Ok(run) => {
                            tell(&Event::Run { contestant, round, run: &run });
                            samples[place].runs.push(run);
                        }
                        Err(why) => samples[place].failure = Some(self.advised(contestant, why)),
                    }
                }
                progress.step();
            }
        }
        Some(Outcome::of(self.bench, self.scale, self.contestants.clone(), &samples))
    }

    /// Returns whether the baseline still runs: without it there is nothing to compare with.
    fn baseline_stands(&self, samples: &[Samples]) -> bool {
        let mut baselines =
            self.contestants.iter().zip(samples).filter(|(one, _)| one.setting.role == Role::Baseline);
        baselines.all(|(_, sample)| sample.failure.is_none())
    }

    /// Adds to a failure of the baseline what the definition says to install.
    fn advised(&self, contestant: &Contestant<'_>, why: String) -> String {
        if contestant.setting.role == Role::Baseline {
            format!("{why}; needed: {}", self.bench.needs)
        } else {
            why
        }
    }

    /// Touches and frees the same amount of memory before every run.
    fn warm_up(&self) -> Result<(), String> {
        warm::touch_mib(self.touch())
    }

    /// Returns the command that a program runs right before its clock starts.
    fn touch_command(&self) -> String {
        warm::command(self.touch())
    }

    fn touch(&self) -> u64 {
        self.touch_mib.unwrap_or_else(|| self.bench.needed_mib(self.scale))
    }
}
