//! Compares programs on garbage-collected heaps by numbers of threads: those of Matsui and Sekiguchi (EusLisp, 1995),
//! with each way to share a heap and in other languages: `largesse bench gc`.
//!
//! Rows are systems, columns are numbers of threads. Systems are built in a temporary directory; one thread runs first
//! to check its answer and to find how many repetitions take the wanted time. Knows how to start programs, and that
//! their threads do equal work. Does not know languages: those are data in `benches/definitions/gc.toml`.
//! # Invariants
//! 1. A program with a wrong answer is not timed, and has no time.
//! 2. A gain compares two runs in the same round.

mod pauses;

use crate::args::{Args, GC};
use crate::engine::*;
use largesse_plot::curves::{Axes, Panel, Series};
use largesse_terminal::say::{counted, say};
use largesse_terminal::table::{Column, Table};
use pauses::Pauses;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Greatest number of runs to find out how many repetitions take the wanted time.
const TRIES: u32 = 4;

/// The contents of the definition, which explains them.
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

/// The work that every thread repeats: repetitions of the first run, expected answer of each thread, and whether each
/// pause for a collection is printed.
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
    /// Names of the programs that it has; empty for all.
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
    /// Keeps the programs and the systems in `names`; a kind of which none is named is kept wholly.
    fn only(mut self, names: &[String]) -> Result<GcSpec> {
        let programs: Vec<_> = self.programs.iter().map(|it| it.name.clone()).collect();
        let systems: Vec<_> = self.systems.iter().map(|it| it.name.clone()).collect();
        if let Some(asked) = names.iter().find(|asked| !programs.contains(asked) && !systems.contains(asked))
        {
            return Err(unknown(asked, &[programs, systems].concat().join(", ")));
        }
        if names.iter().any(|name| programs.contains(name)) {
            self.programs.retain(|program| names.contains(&program.name));
        }
        if names.iter().any(|name| systems.contains(name)) {
            self.systems.retain(|system| names.contains(&system.name));
        }
        self.systems.retain(|system| self.programs.iter().any(|program| system.has(program)));
        Ok(self)
    }
}

/// The results of one system with one number of threads: seconds of one repetition, gain p T(1) / T(p) with p threads
/// in each round, share of the time that collections take, and pauses of all rounds.
struct Place {
    threads: u32,
    cell: Cell,
    gain: Option<Summary>,
    share: Option<Summary>,
    pauses: Pauses,
}

/// The results of one system: its version, repetitions of each thread, and cells by the number of threads, the first
/// for one thread.
struct SystemRow<'a> {
    system: &'a System,
    about: String,
    times: u64,
    places: Vec<Place>,
}

/// The way a comparison is run: folders of programs and of builds; numbers of threads, ascending, of which the first
/// is 1.
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
    let (mut here, mut absent, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for system in &spec.systems {
        match plan.build(system) {
            Ok(()) => here.push(system),
            Err(why) => absent.push((&system.name, why)),
        }
    }
    for program in &spec.programs {
        let systems: Vec<_> = here.iter().copied().filter(|system| system.has(program)).collect();
        chosen.extend((!systems.is_empty()).then_some((program, systems)));
    }
    let each = 1 + plan.threads.len() * args.rounds() as usize;
    let steps = chosen.iter().map(|(_, systems)| systems.len() * each).sum();
    let mut session = Session::begin(args, &root, args.scale, steps);
    for (name, why) in &absent {
        session.absent(GC, Some(name), why, &format!("{name}: {why}"));
    }
    let mut all = Vec::new();
    for (program, systems) in &chosen {
        let (rows, failures) = plan.measure(&session, program, systems);
        session.show(&Outcome { failures, ..outcome(program, &rows, &spec.reference) });
        all.push((*program, rows));
    }
    let mut legend = include_str!("../legends/gc.txt").to_owned();
    for system in &here {
        let mut rows = all.iter().flat_map(|(_, rows)| rows);
        let about = rows.find(|row| row.system.name == system.name).map_or("", |row| &row.about);
        let _ = writeln!(legend, "{}: {}; {about}", system.name, system.title);
    }
    let panels: Vec<_> = here.iter().flat_map(|system| panels(system, &all)).collect();
    session.end(&legend, &panels, &[(processors() as f64, "processors")])
}

impl GcPlan<'_> {
    /// Builds `system`; the error says why it cannot be built here, and what to install.
    fn build(&self, system: &System) -> Result<()> {
        let (folder, needs) = (self.folder.path().join(&system.name), &system.needs);
        std::fs::create_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
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

    /// Returns the command with these words, in the folder of `system`.
    fn command(&self, system: &System, words: &[String]) -> Command {
        let (folder, largesse) = (self.folder.path().join(&system.name), largesse_terminal::own::command());
        let filled = |word: &String| {
            let places = [("{programs}", &self.programs), ("{largesse}", &largesse), ("{build}", &folder)];
            let fill =
                |word: String, (name, place): (_, &PathBuf)| word.replace(name, &place.to_string_lossy());
            places.into_iter().fold(word.clone(), fill)
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
            let mut command = self.command(system, &system.run);
            command.env("PROGRAM", &program.name);
            command.env("THREADS", threads.to_string()).env("TIMES", times.to_string());
            let run = run(command, Duration::from_secs(self.args.limit().into()))?;
            let expected = vec![program.answer; threads as usize];
            run.answered(&program.name, Some((&expected, self.spec.tolerance))).map_err(Ended::Wrong)?;
            Ok(run)
        };
        let set_up = Box::new(|| touch_mib(self.args.touch.unwrap_or(self.spec.touch_mib)));
        let keys = json!({ "setting": system.name, "threads": threads, "times": times });
        Contestant { keys, set_up, ..Contestant::new(format!("{}, {threads} threads", system.name), start) }
    }

    /// Runs one thread untimed, to check the answer and to find the number of repetitions.
    fn repetitions(&self, program: &GcProgram, system: &System) -> Result<u64, Ended> {
        let mut times = program.times;
        for _ in 0..TRIES {
            let run = self.contestant(program, system, 1, times).once()?;
            let share = self.spec.seconds * self.args.scale / measured(&run, program).seconds.max(1e-6);
            times = shared(times, share);
            if (0.5..=2.0).contains(&share) {
                break;
            }
        }
        Ok(times)
    }

    /// Runs all rounds of `program`. Returns its rows and what failed.
    fn measure<'s>(
        &self,
        session: &Session<'_>,
        program: &GcProgram,
        systems: &[&'s System],
    ) -> (Vec<SystemRow<'s>>, Vec<String>) {
        let mut found = Vec::new();
        for system in systems {
            session.progress.at(format!("{}, {}: its answer", program.name, system.name));
            found.push(self.repetitions(program, system));
            session.progress.step();
        }
        let times = |place: usize| found[place].as_ref().map_or(program.times, |times| *times);
        let mut all = Vec::new();
        // All systems run with one thread, then all with the next number.
        for &threads in &self.threads {
            for (place, system) in systems.iter().enumerate() {
                let mut one = self.contestant(program, system, threads, times(place));
                if let Err(ended) = &found[place] {
                    one = Contestant::new(one.name, || Err(ended.clone()));
                }
                all.push(Contestant { needs: vec![place], ..one });
            }
        }
        let samples = session.rounds(&program.name, &all, None);
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for (line, system) in systems.iter().enumerate() {
            let one = &samples[line];
            let mut row =
                SystemRow { system, about: one.about().to_owned(), times: times(line), places: Vec::new() };
            for (&threads, sample) in
                self.threads.iter().zip(samples.iter().skip(line).step_by(systems.len()))
            {
                let of = format!("{}, {}, threads: {threads}", program.name, system.name);
                match &sample.ended {
                    Some(Ended::Wrong(why)) => failures.push(format!("WRONG: {of}: {why}")),
                    Some(Ended::Failed(why)) => failures.push(format!("{of}: could not run: {why}")),
                    Some(Ended::Stopped | Ended::OutOfMemory) | None => {}
                }
                row.places.push(place(program, row.times, threads, one, sample));
            }
            rows.push(row);
        }
        (rows, failures)
    }
}

/// Returns the measurement of a run, which has an answer.
fn measured<'r>(run: &'r Run, program: &GcProgram) -> &'r Measured {
    run.tests.iter().find(|test| test.test == program.name).unwrap_or(&run.tests[0])
}

/// Compares the runs with `threads` threads with those of `one` thread.
fn place(program: &GcProgram, times: u64, threads: u32, one: &Samples<Run>, samples: &Samples<Run>) -> Place {
    let tests = || samples.runs.iter().map(|run| measured(run, program));
    let mut pauses = Pauses::default();
    tests().for_each(|test| pauses.add(test));
    let each: Vec<_> = tests().map(|test| test.seconds / times as f64).collect();
    let rounds = one.runs.iter().map(|run| measured(run, program)).zip(tests());
    let gains: Vec<_> = rounds.map(|(one, test)| f64::from(threads) * one.seconds / test.seconds).collect();
    let shares: Option<Vec<_>> = tests().map(|test| Some(test.gc_seconds? / test.seconds)).collect();
    let cell = match samples.ended.as_ref().or(one.ended.as_ref()) {
        Some(Ended::Stopped) => Cell::Stopped,
        Some(Ended::OutOfMemory) => Cell::OutOfMemory,
        Some(Ended::Wrong(_)) => Cell::Wrong,
        Some(Ended::Failed(_)) => Cell::Failed,
        None => Cell::of(&each, None),
    };
    let share = shares.and_then(|shares| Summary::of(&shares)).filter(|_| cell.summary().is_some());
    Place { threads, cell, gain: Summary::of(&gains), share, pauses }
}

fn outcome(program: &GcProgram, rows: &[SystemRow<'_>], reference: &str) -> Outcome {
    let reference_row = rows.iter().find(|row| row.system.name == reference);
    // The time of one thread divided by that of the reference; `None` for the reference itself.
    let to_reference = |row: &SystemRow<'_>| {
        let other = reference_row?.places[0].cell.summary()?;
        let alone = row.places[0].cell.summary().filter(|_| row.system.name != reference)?;
        Some(alone.median / other.median)
    };
    let near = rows.iter().any(|row| to_reference(row).is_some());
    let mut columns = vec![Column::text(program.name.clone(), 10), Column::number("1 thread")];
    columns.extend(near.then(|| Column::number(format!("to {reference}"))));
    columns.push(Column::number("gc"));
    for place in rows.iter().take(1).flat_map(|row| &row.places[1..]) {
        columns.push(Column::number(counted(place.threads, "thread")).spare(1));
        columns.push(Column::number("gc").spare(1));
    }
    let (mut table, mut below, mut objects) = (Table::new(columns), String::from("\n"), Vec::new());
    for row in rows {
        let (mut cells, ratio) = (vec![row.system.name.clone()], to_reference(row));
        for (at, place) in row.places.iter().enumerate() {
            let mut object = place.cell.object(json!({
                "kind": "cell", "bench": program.name, "setting": row.system.name, "threads": place.threads,
                "times": row.times, "about": row.about,
            }));
            match (&place.cell, place.gain) {
                (Cell::Measured(each, _), Some(gain)) => {
                    object["gain"] = gain.median.into();
                    object["gain_spread"] = gain.spread.into();
                    object["gc_share"] = place.share.map(|share| share.median).into();
                    place.pauses.add_to(&mut object);
                    if at == 0 {
                        object["to_reference"] = ratio.into();
                    }
                    let gain = gain.with_spread(format!("{:.2}", gain.median));
                    cells.push(if at == 0 { time(*each) } else { gain });
                }
                (other, _) => cells.push(other.word()),
            }
            if at == 0 && near {
                cells.push(ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
            }
            cells.push(place.share.map_or("-".into(), |share| format!("{:.0}%", share.median * 100.0)));
            if program.pauses {
                let of = format!("{}, {}", row.system.name, counted(place.threads, "thread"));
                below += &place.pauses.text(&of);
            }
            objects.push(object);
        }
        table.row(cells);
    }
    Outcome { below, objects, ..Outcome::new(&program.name, program.title.clone(), table) }
}

/// Formats the seconds of one repetition in the unit that suits.
fn time(each: Summary) -> String {
    let (unit, name) = match each.median {
        ..1e-6 => (1e-9, "ns"),
        ..1e-3 => (1e-6, "us"),
        ..1.0 => (1e-3, "ms"),
        _ => (1.0, "s"),
    };
    each.with_spread(format!("{:.2} {name}", each.median / unit))
}

/// Returns two panels of one system, gains and shares by threads, as in figure 4 of Matsui and Sekiguchi (1995); none
/// if it has only one program where others have many.
fn panels(system: &System, all: &[(&GcProgram, Vec<SystemRow<'_>>)]) -> Vec<Panel> {
    let curve = |height: fn(&Place) -> Option<f64>| -> Vec<Series> {
        let rows = all.iter().filter_map(|(program, rows)| {
            let row = rows.iter().find(|row| row.system.name == system.name)?;
            let measured = row.places.iter().filter(|place| place.cell.summary().is_some());
            let points = measured.filter_map(|place| Some((f64::from(place.threads), height(place)?)));
            Some(Series { name: program.name.clone(), points: points.collect() })
        });
        rows.collect()
    };
    let gains = curve(|place| Some(place.gain?.median));
    let shares = curve(|place| Some(place.share?.median * 100.0));
    if gains.is_empty() || gains.len() == 1 && all.len() > 1 {
        return Vec::new();
    }
    let places = all.iter().flat_map(|(_, rows)| rows).take(1).flat_map(|row| &row.places);
    let threads = places.map(|place| f64::from(place.threads));
    let limit = threads.map(|threads| (threads, threads.min(processors() as f64))).collect();
    let title = format!("{}: share of GC", system.name);
    vec![
        Panel { title: system.title.clone(), axes: Axes::Gain, limit, series: gains },
        Panel { title, axes: Axes::Share, limit: Vec::new(), series: shares },
    ]
}

/// Returns the numbers of threads `asked` for, else powers of two up to 16 and to twice as many as there are
/// processors: with more, the others only wait. Every gain is relative to one thread.
fn threads(asked: Option<&[u32]>) -> Vec<u32> {
    let usual = [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads as usize <= 2 * processors());
    let mut threads = asked.map_or_else(|| usual.collect(), <[u32]>::to_vec);
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Returns the repetitions that take a share of the time of `times`. A run that took almost no time says little about
/// their number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of a second")]
fn shared(times: u64, share: f64) -> u64 {
    ((times as f64 * share.clamp(0.001, 1000.0)) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_definition_is_complete() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../benches");
        let spec = read::<GcSpec>(&root, OTHER_FILES[1]).unwrap();
        assert!(spec.systems.iter().any(|system| system.name == spec.reference));
        let driver = std::fs::read_to_string(root.join("programs/lisp/threads.l")).unwrap();
        let defined = |program: &GcProgram| driver.contains(&format!("\"{}\"", program.name));
        assert!(spec.programs.iter().all(|it| defined(it) && it.times > 0 && it.answer != 0.0));
        for system in &spec.systems {
            assert_eq!(system.build.is_empty(), system.needs.is_empty(), "{}", system.name);
            let known = |name: &String| spec.programs.iter().any(|program| program.name == *name);
            assert!(system.programs.iter().all(known), "{}", system.name);
            for (_, file) in system.build.iter().flatten().filter_map(|word| word.split_once("{programs}/")) {
                let file = root.join("programs").join(file.split('"').next().unwrap_or(file));
                assert!(file.is_file(), "{}", file.display());
            }
        }
    }
}
