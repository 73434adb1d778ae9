//! Measures what a program loses with less local memory than it uses: `largesse bench far`.
//!
//! Rows are page sizes, columns are shares of local memory; contestants are stock, stock again, and every cell. Another
//! way to keep memory elsewhere is one more [`FarColumn`].
//! # Invariants
//! 1. An answer that differs from stock's in a bit has no time.
//! 2. A run that was stopped has a lower bound, and counts as neither wrong nor measured.

use crate::args::{Args, MARKED};
use crate::engine::*;
use largesse_settings::Short;
use largesse_terminal::table::{Column, Table};
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Least local memory that `largesse run --local` accepts, in bytes, and enough for every program.
const LEAST_LOCAL: u64 = 1 << 20;
const EVERYTHING: u64 = 1 << 50;
/// Page size that the library's tuner chooses.
const AUTO: &str = "auto";

/// A bench and the way it is run.
struct FarPlan<'a> {
    args: &'a Args,
    bench: &'a Bench,
    settings: &'a Settings,
    /// The definition's, with the columns and rows of the command line.
    spec: FarSpec,
    stock: &'a Setting,
    /// The setting to which the options of far memory are added.
    far: &'a Setting,
    root: &'a Path,
    /// File of the last run's report.
    report: PathBuf,
}

/// A function that makes the contestant of a row, a page size; none where that is not possible.
type MakeContestant<'a> = Box<dyn Fn(&str) -> Option<Contestant<'a, Run>> + 'a>;

/// A column of the table: its heading, the JSON keys that identify it, and its contestants.
struct FarColumn<'a> {
    heading: String,
    keys: Value,
    contestant: MakeContestant<'a>,
}

/// One iteration of a compute core, as the tuner reports it.
#[derive(Deserialize)]
struct Pass {
    /// Transfer size in bytes.
    set_bytes: u64,
    /// Number of transfer units that were swapped in, and of those that fit.
    working_set: u64,
    local_sets: u64,
    seconds: f64,
}

/// The comparison of the page sizes in one column.
struct Sizes<'a> {
    /// The fixed page size with the smallest measured ratio.
    best: Option<(&'a str, f64)>,
    /// The ratio of `auto` divided by that of the best, and whether it was measured; else it is a lower bound.
    auto_to_best: Option<(f64, bool)>,
    /// The worst fixed size's ratio divided by that of `auto`; a lower bound if it was stopped.
    worst_to_auto: Option<f64>,
}

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(crate) fn compare(args: &Args, root: &Path, benches: &[Bench], settings: &Settings) -> Result<bool> {
    let (folder, mut plans) = (temp_dir()?, Vec::new());
    for bench in benches {
        let incomplete = |why: &str| format!("bench {} {why}", bench.name);
        let mut spec = bench.far.clone().ok_or_else(|| incomplete("has no [bench.far]"))?;
        if let Some(sizes) = &args.page_sizes {
            let asked = |size: &&String| *size != MARKED || !spec.marked.is_empty();
            spec.page_sizes = sizes.iter().filter(asked).cloned().collect();
        }
        spec.local_percent = args.local.clone().unwrap_or(spec.local_percent);
        let [stock, far] = settings.of(bench, false)?[..] else {
            return Err(incomplete("names no subject in `settings`"));
        };
        let report = folder.path().join("report");
        plans.push(FarPlan { args, bench, settings, spec, stock, far, root, report });
    }
    let cells = plans.iter().map(|plan| plan.spec.local_percent.len() * plan.spec.page_sizes.len());
    let steps = cells.map(|cells| 1 + args.rounds() as usize * (2 + cells)).sum();
    let mut session = Session::begin(args, root, args.scale, steps);
    plans.iter().for_each(|plan| plan.measure(&mut session));
    let legend = if session.compared > 0 { include_str!("legends/far.txt") } else { "" };
    session.end(legend, &[], &[])
}

impl FarPlan<'_> {
    fn store(&self) -> &str {
        self.args.store.as_deref().unwrap_or("memory:")
    }

    /// Returns the MiB that must be available: a store in memory holds all data once more.
    fn needed_mib(&self) -> u64 {
        self.bench.needed_mib(self.args.scale) * if self.store() == "memory:" { 2 } else { 1 }
    }

    /// Makes a contestant that runs the program with `more` arguments, in far memory with further options of
    /// `largesse run`, or in none. Its result has the far memory of the report.
    fn contestant(&self, name: String, far: bool, options: &[&str], more: &[String]) -> Contestant<'_, Run> {
        let setting = if far { self.far } else { self.stock };
        let mut options: Vec<OsString> = options.iter().map(OsString::from).collect();
        options.extend(["--report".into(), self.report.clone().into()]);
        let mut words = self.bench.words(self.root, self.args.scale, self.args.times);
        words.extend(more.iter().map(OsString::from));
        let cap = Duration::from_secs(self.args.limit().into());
        let start = move || run(self.settings.command(setting, &options, &words), cap);
        let set_up = Box::new(|| touch_mib(self.args.touch.unwrap_or(self.needed_mib())));
        let tear_down = Box::new(|run: Option<&mut Run>| {
            let text = std::fs::read_to_string(&self.report).unwrap_or_default();
            let _ = std::fs::remove_file(&self.report);
            let report: Value = serde_json::from_str(&text).unwrap_or_default();
            let Some(run) = run else { return };
            run.more.insert("far".into(), report["far"].clone());
            if report["tuned"].as_array().is_some_and(|cores| !cores.is_empty()) {
                run.more.insert("tuned".into(), report["tuned"].clone());
            }
        });
        Contestant { needs: vec![0], set_up, tear_down, ..Contestant::new(name, start) }
    }

    /// Returns the columns of a program that touches `footprint` bytes; a cell with too little local memory is none.
    fn columns(&self, footprint: u64) -> Vec<FarColumn<'_>> {
        let column = |&percent: &u8| {
            let local = footprint * u64::from(percent) / 100;
            let contestant =
                move |size: &str| (local >= LEAST_LOCAL).then(|| self.cell(size, percent, local));
            let (heading, keys) = (format!("{percent}%"), json!({ "local_percent": percent }));
            FarColumn { heading, keys, contestant: Box::new(contestant) }
        };
        self.spec.local_percent.iter().map(column).collect()
    }

    /// Makes the contestant of a cell with `local` bytes of local memory.
    fn cell(&self, size: &str, percent: u8, local: u64) -> Contestant<'_, Run> {
        let name = format!("{percent}% local, {size}");
        let keys = json!({
            "setting": name, "page_size": size, "local_percent": percent, "local_bytes": local,
        });
        let (size, marks) = if size == MARKED { (AUTO, &self.spec.marked[..]) } else { (size, &[][..]) };
        let local = local.to_string();
        let mut options = vec!["--local", &local, "--far", self.store(), "--page-size", size];
        options.extend(self.args.fault_engine.iter().flat_map(|engine| ["--fault-engine", engine]));
        Contestant { keys, ..self.contestant(name, true, &options, marks) }
    }

    /// Returns the bytes of far memory that the program touches: its resident memory at the end, if no page was
    /// evicted. Programs of far benches free no memory before.
    fn footprint(&self) -> Result<u64> {
        if let Some(mib) = self.spec.far_mib {
            return Ok(scaled(mib << 20, self.args.scale));
        }
        let cap = self.args.limit();
        // The smallest page size is used, since larger transfers would count untouched neighbours.
        let run = self.cell("4K", 100, EVERYTHING).once().map_err(|ended| match ended {
            Ended::Stopped => format!("takes more than {cap} s with all memory local; give more with --cap"),
            // A refusal by Largesse has its own advice.
            Ended::Failed(why) | Ended::Wrong(why) if why.contains("largesse: ") => why,
            Ended::Failed(why) | Ended::Wrong(why) => format!("{why}; needed: {}", self.bench.needs),
        })?;
        let bytes = run.more["far"]["resident_bytes"].as_u64().filter(|bytes| *bytes > 0);
        bytes.ok_or_else(|| "uses no far memory: it has no block of 64 KiB or more".to_owned())
    }

    /// Runs all rounds and prints the outcome, if the bench is possible here.
    fn measure(&self, session: &mut Session<'_>) {
        let name = &self.bench.name;
        if !session.has_room(name, self.needed_mib()) {
            return;
        }
        session.progress.at(format!("{name}, its footprint"));
        let footprint = match self.footprint() {
            Ok(footprint) => footprint,
            Err(why) => return session.skip(name, &why),
        };
        session.print(&[json!({ "kind": "footprint", "bench": name, "bytes": footprint })], "");
        session.progress.step();
        let stock = |name: &str| self.contestant(name.into(), false, &[], &[]);
        let mut all = vec![stock("stock"), stock("stock again")];
        // The index of each cell's contestant, row by row.
        let (columns, mut places) = (self.columns(footprint), Vec::new());
        for size in &self.spec.page_sizes {
            for column in &columns {
                let contestant = (column.contestant)(size);
                places.push(contestant.is_some().then_some(all.len()));
                all.extend(contestant);
            }
        }
        let absent = self.args.rounds() as usize * (2 + places.len() - all.len());
        (0..absent).for_each(|_| session.progress.step());
        let samples = session.rounds(name, &all, Some(self.args.limit()));
        let mut failures = Vec::new();
        let seconds = |place| self.seconds(place, &all[place].name, &samples, &mut failures);
        let values: Vec<_> = (0..all.len()).map(seconds).collect();
        failures.sort_by_key(|why| why.starts_with("WRONG"));
        let outcome = self.outcome(footprint, &columns, &places, &samples, &values);
        session.show(&Outcome { failures, ..outcome });
    }

    /// Returns the seconds of each run of a contestant, whose index is `place`.
    fn seconds(&self, place: usize, name: &str, all: &[Samples<Run>], failures: &mut Vec<String>) -> Values {
        let (bench, sample, stock, cap) = (self.bench, &all[place], &all[0].runs, self.args.limit());
        let why = match &sample.ended {
            Some(Ended::Failed(why)) => Some(why.clone()),
            Some(Ended::Stopped) if place < 2 => Some(format!("stopped after {cap} s; give more with --cap")),
            _ => None,
        };
        failures.extend(why.map(|why| format!("{}, {name}: could not run: {why}", bench.name)));
        let baseline = stock.first().ok_or(Cell::Absent)?;
        let test = &bench.tests[0].name;
        let right = sample.seconds(bench, test, self.args.scale, baseline).map_err(|why| {
            failures.push(format!("WRONG: {}, {name}: {why}", bench.name));
            Cell::Wrong
        })?;
        match sample.ended {
            None => Ok(right),
            Some(Ended::Stopped) => {
                // As a multiple of the whole stock run.
                let whole = Summary::of(&stock.iter().map(|run| run.took.as_secs_f64()).collect::<Vec<_>>());
                Err(Cell::Above(f64::from(cap) / whole.map_or(1e-3, |whole| whole.median.max(1e-3))))
            }
            Some(_) => Err(Cell::Failed),
        }
    }

    /// Compares the times of right answers.
    fn outcome(
        &self,
        bytes: u64,
        columns: &[FarColumn<'_>],
        places: &[Option<usize>],
        all: &[Samples<Run>],
        values: &[Values],
    ) -> Outcome {
        let [stock, again] = [0, 1].map(|place| values[place].as_deref().unwrap_or_default());
        let (baseline, noise) = (Summary::of(stock), noise(stock, again));
        let cell = |place: &Option<usize>| match place.map(|place| &values[place]) {
            Some(Ok(seconds)) if baseline.is_some() => Cell::of(seconds, baseline),
            Some(Err(cell)) => *cell,
            _ => Cell::Absent,
        };
        let cells: Vec<_> = places.iter().map(cell).collect();
        let rows = self.spec.page_sizes.iter().map(String::as_str).zip(cells.chunks(columns.len()));
        let rows: Vec<(&str, &[Cell])> = rows.collect();
        let sizes: Vec<_> = (0..columns.len()).map(|column| Sizes::of(&rows, column)).collect();
        let headings: Vec<_> = columns.iter().map(|column| column.heading.clone()).collect();

        let (bench, test) = (&self.bench.name, &self.bench.tests[0].name);
        let texts = |row: &[Cell]| row.iter().map(shown).collect();
        let mut lines: Vec<_> = rows.iter().map(|(size, row)| (size.to_string(), texts(row))).collect();
        let mut last = |name: &str, cell: &dyn Fn(&Sizes<'_>) -> Option<String>| {
            let cells = sizes.iter().map(|sizes| cell(sizes).unwrap_or("-".into()));
            lines.push((name.to_owned(), cells.collect()));
        };
        last("best fixed", &|it| it.best.map(|(size, ratio)| format!("{size} {}", times(ratio))));
        last("auto to it", &|it| match it.auto_to_best? {
            (ratio, true) => Some(format!("{ratio:.2}")),
            (bound, false) => Some(format!("> {}", rounded_down(bound))),
        });
        last("worst to auto", &|it| it.worst_to_auto.map(times));
        let mut table = table(Column::text(bench, 8), &headings, lines);
        table.apart(3);
        let mut title = self.bench.headline(self.args.scale, all[0].about()) + "\nstock: ";
        title += &baseline.map_or("-".into(), |stock| stock.spread_after(format!("{:.4} s", stock.median)));
        if let Some(noise) = noise {
            title += &format!(", noise ±{:.1}%", noise * 100.0);
        }
        let mib = bytes as f64 / f64::from(1 << 20);
        title += &format!("; touches {mib:.1} MiB; store {}\nslowdown, by local memory", self.store());

        let stock = baseline.map(|stock| merged(json!({ "noise": noise }), &json!(stock)));
        let mut objects = vec![json!({ "kind": "stock", "bench": bench, "test": test, "stock": stock })];
        for (size, row) in &rows {
            for (column, cell) in columns.iter().zip(*row) {
                let object = json!({ "kind": "cell", "bench": bench, "test": test, "page_size": size });
                objects.push(cell.object(merged(object, &column.keys)));
            }
        }
        for (column, sizes) in columns.iter().zip(&sizes) {
            let Some((size, ratio)) = sizes.best else { continue };
            let object = json!({ "kind": "best", "bench": bench, "page_size": size, "ratio": ratio });
            let mut object = merged(object, &column.keys);
            if let Some((ratio, measured)) = sizes.auto_to_best {
                object[if measured { "auto_to_best" } else { "auto_to_best_above" }] = ratio.into();
            }
            objects.push(object);
        }
        let published = self.spec.published.as_ref().map(|it| {
            let ratio = |seconds: &f64| times(seconds / it.baseline_seconds);
            let ratios = |row: &PublishedRow| row.seconds.iter().map(ratio).collect();
            let rows = it.rows.iter().map(|row| (row.page_size.clone(), ratios(row)));
            let headings: Vec<_> = it.local_percent.iter().map(|percent| format!("{percent}%")).collect();
            (it.title.clone(), self::table(Column::text("", 8), &headings, rows))
        });
        let last = self.decisions(&headings, places, all);
        Outcome { below: String::new(), published, last, objects, ..Outcome::new(bench, title, table) }
    }

    /// Returns a table of the tuner's decisions in the last run, iterations by shares of local memory; none for a
    /// program without marks.
    fn decisions(
        &self,
        headings: &[String],
        places: &[Option<usize>],
        samples: &[Samples<Run>],
    ) -> Option<(String, Table)> {
        let marked = self.spec.page_sizes.iter().position(|size| size == MARKED)? * headings.len();
        let passes = |place: &Option<usize>| -> Option<Vec<Pass>> {
            let run = samples[(*place)?].runs.last()?;
            serde_json::from_value(run.more.get("tuned")?[0]["iterations"].clone()).ok()
        };
        let places = &places[marked..][..headings.len()];
        let columns: Vec<_> = places.iter().map(|place| passes(place).unwrap_or_default()).collect();
        let most = columns.iter().map(Vec::len).max().filter(|most| *most > 0)?;
        let cell = |pass: &Pass| {
            let size = Short(usize::try_from(pass.set_bytes).unwrap_or(usize::MAX));
            format!("{size} {}/{} {:.2}", pass.working_set, pass.local_sets, pass.seconds)
        };
        let row = |turn: usize| {
            let cells = columns.iter().map(|passes| passes.get(turn).map_or("-".into(), cell));
            ((turn + 1).to_string(), cells.collect())
        };
        let table = table(Column::number("iteration"), headings, (0..most).map(row));
        Some(("marked: page size, sets swapped in/sets that fit, seconds (last run)".into(), table))
    }
}

impl<'a> Sizes<'a> {
    fn of(rows: &[(&'a str, &[Cell])], column: usize) -> Sizes<'a> {
        let fixed = || rows.iter().filter(|(size, _)| ![AUTO, MARKED].contains(size));
        let ratios = fixed().filter_map(|(size, row)| Some((*size, row[column].ratio()?)));
        let best = ratios.min_by(|(_, one), (_, other)| one.total_cmp(other));
        let auto = rows.iter().find(|(size, _)| *size == AUTO).map(|(_, row)| row[column]);
        let reached = |cell: Cell| if let Cell::Above(bound) = cell { Some(bound) } else { cell.ratio() };
        let to_best = |(it, (_, best)): (Cell, (_, f64))| Some((reached(it)? / best, it.ratio().is_some()));
        let worst = fixed().filter_map(|(_, row)| reached(row[column])).max_by(f64::total_cmp);
        let worst_to_auto = worst.zip(auto.and_then(|auto| auto.ratio())).map(|(worst, auto)| worst / auto);
        Sizes { best, auto_to_best: auto.zip(best).and_then(to_best), worst_to_auto }
    }
}

/// Makes a table with a cell for each column. The smallest shares, which are last, are left out first.
fn table(first: Column, headings: &[String], rows: impl IntoIterator<Item = (String, Vec<String>)>) -> Table {
    let columns = headings.iter().map(|heading| Column::number(heading).spare(1));
    let mut table = Table::new([first].into_iter().chain(columns));
    rows.into_iter().for_each(|(name, cells)| table.row([name].into_iter().chain(cells)));
    table
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Measured(summary, Some(ratio)) => summary.with_spread(times(*ratio)),
        Cell::Above(bound) => format!("> {}x", rounded_down(*bound)),
        other => other.word(),
    }
}

/// Formats a ratio with three significant digits: `1.02x`, `12.3x`, `1811x`.
fn times(ratio: f64) -> String {
    match ratio {
        ..9.995 => format!("{ratio:.2}x"),
        ..99.95 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.0}x"),
    }
}

/// Formats a lower bound, rounded down so that it stays one.
fn rounded_down(bound: f64) -> String {
    let (digits, unit) = if bound < 10.0 { (1, 10.0) } else { (0, 1.0) };
    format!("{:.digits$}", (bound * unit).floor() / unit)
}
