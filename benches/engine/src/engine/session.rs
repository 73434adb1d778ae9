//! Runs a comparison from its first line to its last: the machine, rounds, outcomes, the legend and the picture.

use super::{Contestant, Ended, Event, MachineFacts, Outcome, Result, Run, Samples};
use super::{available_mib, merged, no_claim, take_turns};
use crate::args::Args;
use largesse_plot::curves::{Panel, svg};
use largesse_terminal::progress::Progress;
use largesse_terminal::say::say;
use largesse_terminal::table::Paper;
use serde_json::{Value, json};

/// A running comparison.
pub(crate) struct Session<'a> {
    pub(crate) args: &'a Args,
    machine: MachineFacts,
    progress: Progress,
    compared: usize,
    good: bool,
}

impl<'a> Session<'a> {
    /// Prints the machine. The comparison has `steps` turns.
    pub(crate) fn begin(args: &'a Args, machine: MachineFacts, scale: f64, steps: u64) -> Session<'a> {
        if args.json {
            say!("{}", json!({ "kind": "machine", "machine": machine, "scale": scale }));
        } else {
            say!("{}\n", machine.line());
        }
        Session { args, machine, progress: Progress::over(steps), compared: 0, good: true }
    }

    /// Prints JSON objects, or the text, which may be empty.
    pub(crate) fn print(&self, objects: &[Value], text: &str) {
        self.progress.aside(|| {
            if self.args.json {
                objects.iter().for_each(|object| say!("{object}"));
            } else if !text.is_empty() {
                say!("{}", Paper::here().page(text));
            }
        });
    }

    /// Prints that a setting is not possible here, or, without a setting, the whole bench.
    pub(crate) fn absent(&self, bench: &str, setting: Option<&str>, why: &str, text: &str) {
        self.print(&[json!({ "kind": "absent", "bench": bench, "setting": setting, "why": why })], text);
    }

    /// Prints why the whole bench is skipped.
    pub(crate) fn skip(&self, bench: &str, why: &str) {
        self.absent(bench, None, why, &format!("{bench}: skipped: {why}\n"));
    }

    /// Returns whether there are `needed` MiB of memory, and skips the bench if not.
    pub(crate) fn has_room(&self, bench: &str, needed: u64) -> bool {
        let available = available_mib();
        if needed > available {
            self.skip(bench, &format!("needs {needed} MiB of memory; {available} MiB are available"));
        }
        needed <= available
    }

    /// Shows `what` as the current step.
    pub(crate) fn at(&self, what: String) {
        self.progress.at(what);
    }

    /// Counts steps as done.
    pub(crate) fn step(&self, steps: usize) {
        (0..steps).for_each(|_| self.progress.step());
    }

    /// Runs programs in `rounds` rounds, and prints every run; stopped ones, too, if `stops`.
    pub(crate) fn rounds(
        &self,
        bench: &str,
        all: &[Contestant<'_, Run>],
        rounds: usize,
        cap: Option<u32>,
    ) -> Vec<Samples<Run>> {
        take_turns(all, rounds, |one, round, event| match event {
            Event::Begins => self.at(format!("{bench}, {}", one.name)),
            Event::Ran(run) => {
                let object = json!({ "kind": "run", "bench": bench, "round": round });
                self.print(&[merged(merged(object, &one.keys), &json!(run))], "");
            }
            Event::Ended(Ended::Stopped) if cap.is_some() => {
                let object = json!({ "kind": "stopped", "bench": bench, "round": round, "cap": cap });
                self.print(&[merged(object, &one.keys)], "");
            }
            Event::Ended(_) => {}
            Event::Over => self.step(1),
        })
    }

    /// Prints the outcome of a bench.
    pub(crate) fn show(&mut self, outcome: &Outcome) {
        self.compared += 1;
        let objects = outcome.objects();
        self.good &= objects.iter().all(|object| object["kind"] != "trouble");
        self.print(&objects, &outcome.text(Paper::here()));
    }

    /// Prints the legend, and what `runs` runs allow to claim; draws panels and walls if a picture is asked for.
    /// Returns whether everything ran and every answer agrees.
    pub(crate) fn end(self, legend: &str, runs: Option<u32>) -> bool {
        self.progress.finish();
        self.print(&[], legend);
        if let Some(words) = runs.and_then(|runs| no_claim(runs as usize)) {
            self.print(&[], &format!("{words}, good for a look."));
        }
        self.good && self.compared > 0
    }

    /// Draws the picture that `--svg` asks for. Walls are widths with a name.
    pub(crate) fn draw(&self, panels: &[Panel], walls: &[(f64, &str)]) -> Result<()> {
        let Some(path) = &self.args.svg else { return Ok(()) };
        let picture = svg(&self.machine.line(), panels, walls)?;
        std::fs::write(path, picture).map_err(|why| format!("{}: {why}", path.display()))
    }
}
