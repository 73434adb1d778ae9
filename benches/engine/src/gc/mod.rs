//! Implements `largesse bench gc`, which compares programs on garbage-collected heaps by numbers of threads: the
//! programs of Matsui and Sekiguchi (EusLisp, 1995), with each way to share a heap and in other languages.
//!
//! Rows are systems, columns are numbers of threads. Systems are built in a temporary directory. One thread runs
//! first, to check its answer and to find how many repetitions take the wanted time. Knows how to start programs, and
//! that their threads do equal work. Does not know languages: those are data in `benches/definitions/gc.toml`.
//! # Invariants
//! 1. A program with a wrong answer is not timed, and has no time.
//! 2. A gain compares two runs in the same round.

mod pauses;

use crate::args::{Args, GC};
use crate::engine::*;
use largesse_plot::curves::{Axes, Panel};
use largesse_terminal::name;
use largesse_terminal::say::{counted, say};
use largesse_terminal::table::{Column, Table};
use pauses::Pauses;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Greatest number of runs that look for the number of repetitions that takes the wanted time.
const TRIES: u32 = 4;

/// The contents of `gc.toml`, where each key is explained.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GcSpec {
    reference: String,
    seconds: f64,
    touch_mib: u64,
    tolerance: f64,
    #[serde(rename = "program")]
    programs: Vec<GcProgram>,
    #[serde(rename = "system")]
    systems: Vec<System>,
}

/// A program whose work every thread repeats. `times` is the number of repetitions in its first run, `answer` the
/// expected answer of each thread, and `pauses` says whether the pauses for collections are printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GcProgram {
    name: String,
    title: String,
    times: u64,
    answer: f64,
    #[serde(default)]
    pauses: bool,
}

/// A language and the way its threads share a heap.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    name: String,
    title: String,
    #[serde(default)]
    needs: String,
    /// Names of the programs that the system has; empty if it has all.
    #[serde(default)]
    programs: Vec<String>,
    #[serde(default)]
    build: Vec<Vec<String>>,
    run: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

impl System {
    fn has(&self, program: &GcProgram) -> bool {
        self.programs.is_empty() || self.programs.contains(&program.name)
    }
}

impl GcSpec {
    /// Keeps the programs and the systems that `names` has. If it has no program, all programs are kept; likewise for
    /// systems.
    fn only(mut self, names: &[String]) -> Result<GcSpec> {
        let programs: Vec<_> = self.programs.iter().map(|it| it.name.clone()).collect();
        let systems: Vec<_> = self.systems.iter().map(|it| it.name.clone()).collect();
        check_names(names, &[&programs[..], &systems].concat())?;
        let keeps =
            |kind: &[String], it: &String| names.contains(it) || !names.iter().any(|it| kind.contains(it));
        self.programs.retain(|program| keeps(&programs, &program.name));
        self.systems.retain(|system| keeps(&systems, &system.name));
        self.systems.retain(|system| self.programs.iter().any(|program| system.has(program)));
        Ok(self)
    }
}

/// How a comparison is run: `programs` is the folder of sources and `folder` that of builds; `threads` are the numbers
/// of threads in ascending order, beginning with 1.
struct GcPlan<'a> {
    args: &'a Args,
    spec: &'a GcSpec,
    programs: PathBuf,
    folder: TempDir,
    threads: Vec<u32>,
}

/// Runs the comparison and prints it. Returns whether everything ran and every answer is right.
pub(crate) fn compare(args: &Args) -> Result<bool> {
    let root = benches(args.programs.as_deref())?;
    let spec = read::<GcSpec>(&root, OTHER_FILES[1])?.only(&args.only)?;
    if args.list {
        spec.programs.iter().for_each(|program| say!("{:14} {}", program.name, program.title));
        spec.systems.iter().for_each(|system| say!("{:14} {}", system.name, system.title));
        return Ok(true);
    }
    let programs = std::path::absolute(root.join("programs")).unwrap_or_else(|_| root.join("programs"));
    let threads = threads(args.threads.as_deref());
    let plan = GcPlan { args, spec: &spec, programs, folder: temp_dir()?, threads };
    let built: Vec<_> = spec.systems.iter().map(|system| (system, plan.build(system))).collect();
    let here: Vec<_> = built.iter().filter(|(_, built)| built.is_ok()).map(|(system, _)| *system).collect();
    let having = |program| (program, here.iter().copied().filter(|it| it.has(program)).collect::<Vec<_>>());
    let chosen: Vec<_> = spec.programs.iter().map(having).filter(|(_, with)| !with.is_empty()).collect();
    let each = 1 + plan.threads.len() * args.rounds() as usize;
    let steps = chosen.iter().map(|(_, systems)| systems.len() * each).sum();
    let mut session = Session::begin(args, &root, args.scale, steps);
    for (System { name, .. }, built) in &built {
        if let Err(why) = built {
            session.absent(GC, Some(name), why, &format!("{name}: {why}"));
        }
    }
    let mut cells = Vec::new();
    for (program, systems) in &chosen {
        let outcome = plan.measure(&session, program, systems);
        session.show(&outcome);
        cells.extend(outcome.objects);
    }
    let mut legend = include_str!("../legends/gc.txt").to_owned();
    for system in &here {
        let about = cells.iter().find(|cell| cell["setting"] == system.name).map(|cell| &cell["about"]);
        let about = about.and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(legend, "{}: {}; {about}", system.name, system.title);
    }
    let panels: Vec<_> = here.iter().flat_map(|system| plan.panels(system, &cells)).collect();
    session.end(&legend, &panels, &[(processors() as f64, "processors")])
}

impl GcPlan<'_> {
    /// Builds `system`. The error says why it cannot be built here, and what to install.
    fn build(&self, system: &System) -> Result<()> {
        let (folder, needs) = (self.folder.path().join(&system.name), &system.needs);
        std::fs::create_dir(&folder).map_err(|why| format!("{}: {why}", name(&folder)))?;
        for words in &system.build {
            let output = self.command(system, words).stdin(Stdio::null()).output();
            let output = output.map_err(|_| format!("not installed: {needs}"))?;
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                let why = errors.lines().find(|line| line.contains("error")).or(errors.lines().last());
                let why = why.unwrap_or("it gives no reason");
                return Err(format!("{} fails: {why}; needed: {needs}", words[0]));
            }
        }
        Ok(())
    }

    /// Returns the command with these words, to be run in the build folder of `system`.
    fn command(&self, system: &System, words: &[String]) -> Command {
        let (folder, largesse) = (self.folder.path().join(&system.name), largesse_terminal::own::command());
        let places = [("{programs}", &self.programs), ("{largesse}", &largesse), ("{build}", &folder)];
        let filled = |word: &String| {
            places
                .iter()
                .fold(word.clone(), |word, (name, place)| word.replace(name, &place.to_string_lossy()))
        };
        let mut command = Command::new(words.first().map(filled).unwrap_or_default());
        command.args(words.iter().skip(1).map(filled)).current_dir(&folder);
        command.envs(system.environment.iter().map(|(name, value)| (name, filled(value))));
        command
    }

    /// Makes the contestant that runs `program` with `threads` threads, each of which repeats it `times` times.
    fn contestant<'s>(
        &'s self,
        program: &'s GcProgram,
        system: &'s System,
        threads: u32,
        times: u64,
    ) -> Contestant<'s, Run> {
        let start = move || {
            touch_mib(self.args.touch.unwrap_or(self.spec.touch_mib))?;
            let mut command = self.command(system, &system.run);
            command.env("PROGRAM", &program.name);
            command.env("THREADS", threads.to_string()).env("TIMES", times.to_string());
            let run = run(command, Duration::from_secs(self.args.limit().into()))?;
            let expected = vec![program.answer; threads as usize];
            run.answered(&program.name, Some((&expected, self.spec.tolerance))).map_err(Ended::Wrong)?;
            Ok(run)
        };
        let keys = json!({ "setting": system.name, "threads": threads, "times": times });
        Contestant {
            keys,
            ..Contestant::new(format!("{}, {}", system.name, counted(threads, "thread")), start)
        }
    }

    /// Runs one thread untimed, to check its answer and to find the number of repetitions that takes the wanted time.
    fn repetitions(&self, program: &GcProgram, system: &System) -> Result<u64, Ended> {
        let mut times = program.times;
        for _ in 0..TRIES {
            let run = (self.contestant(program, system, 1, times).run)()?;
            let share = self.spec.seconds * self.args.scale / measured(&run, program).seconds.max(1e-6);
            times = shared(times, share);
            if (0.5..=2.0).contains(&share) {
                break;
            }
        }
        Ok(times)
    }

    /// Runs all rounds of `program`, and compares the times of right answers.
    fn measure(&self, session: &Session<'_>, program: &GcProgram, systems: &[&System]) -> Outcome {
        let mut found = Vec::new();
        for system in systems {
            session.progress.at(format!("{}, {}: its answer", program.name, system.name));
            found.push(self.repetitions(program, system));
            session.progress.step();
        }
        let times: Vec<_> = found.iter().map(|found| *found.as_ref().unwrap_or(&program.times)).collect();
        let mut all = Vec::new();
        // All systems run with one thread, then all with the next number.
        for &threads in &self.threads {
            for (place, (system, found)) in systems.iter().zip(&found).enumerate() {
                let mut one = self.contestant(program, system, threads, times[place]);
                if let Err(ended) = found {
                    one.run = Box::new(|| Err(ended.clone()));
                }
                all.push(Contestant { needs: vec![place], ..one });
            }
        }
        let samples = session.rounds(&program.name, &all, None);
        self.outcome(program, systems, &times, &samples)
    }

    /// Compares the samples. `samples` has those of all systems with one thread, then those with the next number of
    /// threads.
    fn outcome(
        &self,
        program: &GcProgram,
        systems: &[&System],
        times: &[u64],
        samples: &[Samples<Run>],
    ) -> Outcome {
        let reference = &self.spec.reference;
        let row = |row: usize| {
            let all = self.threads.iter().zip(samples.iter().skip(row).step_by(systems.len()));
            all.map(|(&threads, of)| GcCell::of(program, times[row], threads, &samples[row], of)).collect()
        };
        let rows: Vec<Vec<GcCell<'_>>> = (0..systems.len()).map(row).collect();
        // The time of one thread divided by that of the reference; `None` for the reference itself.
        let seconds = |row: usize| Some(rows[row][0].cell.summary()?.median);
        let other = systems.iter().position(|system| system.name == *reference);
        let to_reference = |row: usize| Some(seconds(row).filter(|_| other != Some(row))? / seconds(other?)?);
        let near = (0..systems.len()).any(|row| to_reference(row).is_some());
        let mut columns = vec![Column::text(program.name.clone(), 10), Column::number("1 thread")];
        columns.extend(near.then(|| Column::number(format!("to {reference}"))));
        columns.push(Column::number("gc"));
        for threads in &self.threads[1..] {
            columns.push(Column::number(counted(*threads, "thread")).spare(1));
            columns.push(Column::number("gc").spare(1));
        }
        let mut outcome = Outcome::new(&program.name, program.title.clone(), Table::new(columns));
        for (row, system) in systems.iter().enumerate() {
            let (ratio, mut line) = (to_reference(row), vec![system.name.clone()]);
            for GcCell { threads, cell, gain, share, pauses, why } in &rows[row] {
                let label = format!("{}, {}, threads: {threads}", program.name, system.name);
                outcome.failures.extend(why.as_ref().and_then(|why| why.message(&label)));
                let mut object = json!({
                    "kind": "cell", "bench": program.name, "setting": system.name, "threads": threads,
                    "times": times[row], "about": samples[row].about(),
                });
                object = merged(object, &json!(cell));
                line.push(match cell.summary().zip(*gain) {
                    None => cell.word(),
                    Some((time, gain)) => {
                        let (gained, spread) = (gain.median, gain.spread);
                        let more = json!({ "gain": gained, "gain_spread": spread, "gc_share": share });
                        object = [more, pauses.keys()].iter().fold(object, merged);
                        if *threads == 1 {
                            object["to_reference"] = ratio.into();
                            shown(time)
                        } else {
                            gain.with_spread(format!("{gained:.2}"))
                        }
                    }
                });
                if *threads == 1 && near {
                    line.push(ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
                }
                line.push(share.map_or("-".into(), |share| format!("{:.0}%", share * 100.0)));
                if program.pauses {
                    outcome.below +=
                        &pauses.text(&format!("{}, {}", system.name, counted(*threads, "thread")));
                }
                outcome.objects.push(object);
            }
            outcome.table.row(line);
        }
        outcome
    }

    /// Returns two panels of one system: gains and shares of collection time by threads, as in figure 4 of Matsui and
    /// Sekiguchi (1995). Returns none if the system has only one program where others have many.
    fn panels(&self, system: &System, cells: &[Value]) -> Vec<Panel> {
        let curves = |key: &str, factor: f64| {
            let ours = cells.iter().filter(|cell| cell["setting"] == system.name);
            curves(ours, "bench", |cell| Some((cell["threads"].as_f64()?, factor * cell[key].as_f64()?)))
        };
        let gains = curves("gain", 1.0);
        if let [only] = &gains[..]
            && cells.iter().any(|cell| cell["bench"] != only.name)
        {
            return Vec::new();
        }
        let threads = self.threads.iter().map(|&threads| f64::from(threads));
        let limit = threads.map(|threads| (threads, threads.min(processors() as f64))).collect();
        let title = format!("{}: share of GC", system.name);
        let shares = curves("gc_share", 100.0);
        let panels = vec![
            Panel { title: system.title.clone(), axes: Axes::Gain, limit, series: gains },
            Panel { title, axes: Axes::Share, limit: Vec::new(), series: shares },
        ];
        panels.into_iter().filter(|panel| !panel.series.is_empty()).collect()
    }
}

/// Returns the measurement of `program` in a run, which has at least one.
fn measured<'r>(run: &'r Run, program: &GcProgram) -> &'r Measured {
    run.tests.iter().find(|test| test.test == program.name).unwrap_or(&run.tests[0])
}

/// The results of one system with one number of threads: seconds of one repetition, gain p T(1) / T(p) with p threads
/// in each round, share of the time that collections take, pauses of all rounds, and the reason for which there are no
/// more rounds.
struct GcCell<'a> {
    threads: u32,
    cell: Cell,
    gain: Option<Summary>,
    share: Option<f64>,
    pauses: Pauses,
    why: &'a Option<Ended>,
}

impl GcCell<'_> {
    /// Compares the runs with `threads` threads with those of `one` thread.
    fn of<'a>(
        program: &GcProgram,
        times: u64,
        threads: u32,
        one: &Samples<Run>,
        samples: &'a Samples<Run>,
    ) -> GcCell<'a> {
        let tests = || samples.runs.iter().map(|run| measured(run, program));
        let each = tests().map(|test| test.seconds / times as f64).collect();
        let rounds = one.runs.iter().map(|run| measured(run, program)).zip(tests());
        let gains: Vec<_> =
            rounds.map(|(one, test)| f64::from(threads) * one.seconds / test.seconds).collect();
        let shares: Option<Vec<_>> = tests().map(|test| Some(test.gc_seconds? / test.seconds)).collect();
        let ended = samples.ended.as_ref().or(one.ended.as_ref());
        let cell = Cell::of(&ended.map_or(Ok(each), |ended| Err(ended.cell())), None);
        let share = cell.summary().and(shares).and_then(|shares| Some(Summary::of(&shares)?.median));
        let (gain, pauses) = (Summary::of(&gains), Pauses::of(tests()));
        GcCell { threads, cell, gain, share, pauses, why: &samples.ended }
    }
}

/// Formats the seconds of one repetition in a unit between ns and s.
fn shown(each: Summary) -> String {
    let (unit, name) = match each.median {
        ..1e-6 => (1e-9, "ns"),
        ..1e-3 => (1e-6, "us"),
        ..1.0 => (1e-3, "ms"),
        _ => (1.0, "s"),
    };
    each.with_spread(format!("{:.2} {name}", each.median / unit))
}

/// Returns the numbers of threads that are `asked` for, and 1, because every gain is relative to one thread. The
/// default are the powers of two up to 16, and up to twice as many as there are processors: further threads would only
/// wait.
fn threads(asked: Option<&[u32]>) -> Vec<u32> {
    let usual = [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads as usize <= 2 * processors());
    let threads = asked.map_or_else(|| usual.collect(), <[u32]>::to_vec);
    BTreeSet::from_iter(threads.into_iter().chain([1])).into_iter().collect()
}

/// Returns the number of repetitions that take `share` times as long as `times` repetitions. The share is bounded,
/// because a run that took almost no time says little about the number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of a second")]
fn shared(times: u64, share: f64) -> u64 {
    ((times as f64 * share.clamp(0.001, 1000.0)) as u64).max(1)
}
