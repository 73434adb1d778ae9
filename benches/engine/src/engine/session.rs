//! Runs a comparison from its first line to its last: the machine, rounds, outcomes, the legend and the picture.

use super::{Contestant, Ended, MachineFacts, Outcome, Result, Run, Samples};
use super::{available_mib, merged, no_claim, take_turns};
use crate::args::{Args, KERNELS};
use largesse_plot::curves::{Panel, Series, svg};
use largesse_terminal::name;
use largesse_terminal::progress::Progress;
use largesse_terminal::say::{counted, say};
use largesse_terminal::table::Paper;
use serde_json::{Value, json};
use std::path::Path;

/// A comparison while it runs: its options, the machine, and whether anything has failed yet.
pub(crate) struct Session<'a> {
    args: &'a Args,
    machine: MachineFacts,
    pub(crate) progress: Progress,
    pub(crate) compared: usize,
    good: bool,
}

impl<'a> Session<'a> {
    /// Begins a comparison of `steps` runs, and prints what is known of the machine.
    pub(crate) fn begin(args: &'a Args, root: &Path, scale: f64, steps: usize) -> Session<'a> {
        let machine = MachineFacts::here(root);
        if args.json {
            say!("{}", json!({ "kind": "machine", "machine": machine, "scale": scale }));
        } else {
            say!("{}\n", machine.line());
        }
        Session { args, machine, progress: Progress::over(steps as u64), compared: 0, good: true }
    }

    /// Prints the JSON objects under `--json`, otherwise the text, which may be empty.
    pub(crate) fn print(&self, objects: &[Value], text: &str) {
        self.progress.aside(|| {
            if self.args.json {
                objects.iter().for_each(|object| say!("{object}"));
            } else if !text.is_empty() {
                say!("{}", Paper::here().page(text));
            }
        });
    }

    /// Prints why the setting is not possible on this machine or, without a setting, why the whole bench is not.
    pub(crate) fn absent(&self, bench: &str, setting: Option<&str>, why: &str, text: &str) {
        self.print(&[json!({ "kind": "absent", "bench": bench, "setting": setting, "why": why })], text);
    }

    pub(crate) fn skip(&self, bench: &str, why: &str) {
        self.absent(bench, None, why, &format!("{bench}: skipped: {why}\n"));
    }

    /// Returns whether `needed` MiB of memory are available. If not, prints that the bench is skipped.
    pub(crate) fn has_room(&self, bench: &str, needed: u64) -> bool {
        let available = available_mib();
        if needed > available {
            self.skip(bench, &format!("needs {needed} MiB of memory; {available} MiB are available"));
        }
        needed <= available
    }

    /// Runs programs in rounds, and prints a JSON object for every run. If `cap`, the time limit in seconds, is given,
    /// prints one for each run that was stopped at that limit, too.
    pub(crate) fn rounds(
        &self,
        of: &str,
        all: &[Contestant<'_, Run>],
        cap: Option<u32>,
    ) -> Vec<Samples<Run>> {
        let turn = |one: &Contestant<'_, Run>, round| {
            self.progress.at(format!("{of}, {}", one.name));
            let done = (one.run)();
            let object = |kind| merged(json!({ "kind": kind, "bench": of, "round": round }), &one.keys);
            match (&done, cap) {
                (Ok(run), _) => self.print(&[merged(object("run"), &json!(run))], ""),
                (Err(Ended::Stopped), Some(cap)) => {
                    self.print(&[merged(object("stopped"), &json!({ "cap": cap }))], "");
                }
                _ => {}
            }
            self.progress.step();
            done
        };
        take_turns(all, self.args.rounds(), turn, || self.progress.step())
    }

    /// Prints the outcome of a bench, and notes its failures.
    pub(crate) fn show(&mut self, outcome: &Outcome) {
        self.compared += 1;
        let objects = outcome.objects();
        self.good &= objects.iter().all(|object| object["kind"] != "trouble");
        self.print(&objects, &outcome.text(Paper::here()));
    }

    /// Ends the comparison: prints the legend, and whether there are enough runs to claim a difference, and draws the
    /// picture that `--svg` asks for. `walls` are the named positions at which the picture has a vertical line.
    /// Returns whether everything ran and every answer agrees.
    pub(crate) fn end(self, legend: &str, panels: &[Panel], walls: &[(f64, &str)]) -> Result<bool> {
        self.progress.finish();
        let (runs, cap) = (counted(self.args.rounds(), "run"), self.args.limit().to_string());
        let legend = legend.trim_end_matches('\n').replace("{runs}", &runs).replace("{cap}", &cap);
        self.print(&[], &legend);
        let claims = self.args.name != KERNELS && !legend.is_empty();
        if let Some(words) = no_claim(self.args.rounds() as usize).filter(|_| claims) {
            self.print(&[], &format!("{words}, good for a look."));
        }
        if let Some(path) = &self.args.svg {
            let picture = svg(&self.machine.line(), panels, walls)?;
            std::fs::write(path, picture).map_err(|why| format!("{}: {why}", name(path)))?;
        }
        Ok(self.good && self.compared > 0)
    }
}

/// Returns a curve for each value of the key `name` in JSON objects. The order of the objects is that of the curves'
/// points.
pub(crate) fn curves<'v>(
    objects: impl Iterator<Item = &'v Value>,
    name: &str,
    point: impl Fn(&Value) -> Option<(f64, f64)>,
) -> Vec<Series> {
    let mut curves: Vec<Series> = Vec::new();
    for object in objects {
        let name = object[name].as_str().unwrap_or_default();
        let known = curves.iter().position(|curve| curve.name == name);
        let place = known.unwrap_or_else(|| {
            curves.push(Series { name: name.to_owned(), points: Vec::new() });
            curves.len() - 1
        });
        curves[place].points.extend(point(object));
    }
    curves
}
