//! The outcome of one far bench: slowdowns by page size and share of local memory, and what was moved.

use super::least::Trace;
use super::moved::Moved;
use super::rows::{AUTO, FarColumn, Way};
use crate::args::MARKED;
use crate::engine::*;
use largesse_settings::Short;
use largesse_terminal::table::{Column, Table};
use serde::Deserialize;
use serde_json::{Value, json};

/// The results of all contestants of a bench.
pub(super) struct FarTable<'a> {
    pub(super) bench: &'a Bench,
    pub(super) spec: &'a FarSpec,
    pub(super) scale: f64,
    pub(super) store: &'a str,
    /// Whether programs ran in a control group.
    pub(super) is_grouped: bool,
    pub(super) ways: &'a [Way],
    /// Bytes of the program's data.
    pub(super) data: u64,
    pub(super) columns: &'a [FarColumn],
    /// The index of each cell's contestant, row by row.
    pub(super) places: &'a [Option<usize>],
    pub(super) samples: &'a [Samples<Run>],
    pub(super) values: &'a [Values],
    pub(super) trace: Option<&'a Trace>,
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

/// The comparison of the rows in one column.
struct Sizes<'a> {
    /// The fixed page size with the smallest measured ratio.
    best: Option<(&'a str, f64)>,
    /// The ratio of `auto` divided by that of the best, and whether it was measured; else it is a lower bound.
    auto_to_best: Option<(f64, bool)>,
    /// The worst fixed size's ratio divided by that of `auto`; a lower bound if it was stopped.
    worst_to_auto: Option<f64>,
}

/// A row and its cells, by column.
type FarRow<'a> = (&'a Way, &'a [Cell]);

impl FarTable<'_> {
    /// Compares the times of right answers.
    pub(super) fn outcome(&self) -> Outcome {
        let (columns, all) = (self.columns, self.samples);
        let [stock, again] = [0, 1].map(|place| self.values[place].as_deref().unwrap_or_default());
        let (baseline, noise) = (Summary::of(stock), noise(stock, again));
        let cell = |place: &Option<usize>| match place.map(|place| &self.values[place]) {
            Some(Ok(seconds)) if baseline.is_some() => Cell::of(seconds, baseline),
            Some(Err(cell)) => *cell,
            _ => Cell::Absent,
        };
        let cells: Vec<_> = self.places.iter().map(cell).collect();
        let rows: Vec<FarRow<'_>> = self.ways.iter().zip(cells.chunks(columns.len())).collect();
        let headings: Vec<_> = columns.iter().map(|column| format!("{}%", column.percent)).collect();
        let (bench, test) = (&self.bench.name, &self.bench.tests[0].name);
        let texts = |row: &[Cell]| row.iter().map(shown).collect();
        let mut lines: Vec<_> = rows.iter().map(|(way, row)| (way.name().to_owned(), texts(row))).collect();
        let sizes: Vec<_> = (0..columns.len()).map(|column| Sizes::of(&rows, column)).collect();
        let summary = summary(&rows, &sizes);
        let last = summary.len();
        lines.extend(summary);
        let mut table = table(Column::text(bench, 8), &headings, lines);
        table.apart(last);
        let mut title = self.bench.headline(self.scale, all[0].about()) + "\nstock: ";
        title += &baseline.map_or("-".into(), |stock| stock.spread_after(format!("{:.4} s", stock.median)));
        if let Some(noise) = noise {
            title += &format!(", noise ±{:.1}%", noise * 100.0);
        }
        title += &format!("; touches {:.1} MiB; store {}\n", mib(self.data), self.store);
        title +=
            if self.is_grouped { "slowdown, by limit of the group" } else { "slowdown, by local memory" };

        let stock = baseline.map(|stock| merged(json!({ "noise": noise }), &json!(stock)));
        let mut objects = vec![json!({ "kind": "stock", "bench": bench, "test": test, "stock": stock })];
        let mut moved = self.moved_table();
        for ((way, row), places) in rows.iter().zip(self.places.chunks(columns.len())) {
            for ((column, cell), place) in columns.iter().zip(*row).zip(places) {
                let object = merged(json!({ "kind": "cell", "bench": bench, "test": test }), &way.keys());
                let object = cell.object(merged(object, &column.keys()));
                objects.push(merged(object, &self.add_moved(&mut moved, way, *column, *place)));
            }
        }
        for (column, sizes) in columns.iter().zip(&sizes) {
            let Some((size, ratio)) = sizes.best else { continue };
            let object = json!({ "kind": "best", "bench": bench, "page_size": size, "ratio": ratio });
            let mut object = merged(object, &column.keys());
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
        let last = self.decisions(&headings).into_iter().chain(moved).collect();
        Outcome { below: String::new(), published, last, objects, ..Outcome::new(bench, title, table) }
    }

    /// Returns the empty table of what was moved, with its title; none if no run counted it.
    fn moved_table(&self) -> Option<(String, Table)> {
        let ran = self.places.iter().flatten().filter_map(|place| self.samples[*place].runs.last());
        ran.filter_map(Moved::of).next()?;
        let heads = ["local", "resident", "read", "written", "each", "before touch", "to least"];
        let heads = heads.into_iter().take(if self.trace.is_some() { 7 } else { 6 }).map(Column::number);
        let table = Table::new([Column::text("moved", 8)].into_iter().chain(heads));
        Some(("what was moved (last run)".into(), table))
    }

    /// Adds the row of a cell to the table of what was moved, and returns the JSON keys.
    fn add_moved(
        &self,
        table: &mut Option<(String, Table)>,
        way: &Way,
        column: FarColumn,
        place: Option<usize>,
    ) -> Value {
        let run = place.and_then(|place| self.samples[place].runs.last());
        let (Some(moved), Some((_, table))) = (run.and_then(Moved::of), table) else { return Value::Null };
        let resident = (moved.resident as f64 / self.data as f64).min(1.0);
        // The largest power of two that is not above the mean transfer.
        let unit = 1 << moved.unit.max(4096).ilog2();
        let memory =
            if let Way::Peer(_) = way { column.limit.unwrap_or(moved.resident) } else { column.local };
        let least = self.trace.map(|trace| trace.least(unit, memory));
        let ratio = least.filter(|least| *least > 0).map(|least| moved.read as f64 / least as f64);
        let mut cells = vec![
            way.name().to_owned(),
            format!("{}%", column.percent),
            format!("{:.0}%", 100.0 * resident),
            format!("{:.0} MiB", mib(moved.read)),
            format!("{:.0} MiB", mib(moved.written)),
            format!("{:.0} KiB", moved.unit as f64 / 1024.0),
            format!("{:.0}%", 100.0 * moved.before_touch),
        ];
        cells.extend(self.trace.map(|_| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"))));
        table.row(cells);
        let mut keys = json!({
            "resident": resident, "bytes_read": moved.read, "bytes_written": moved.written,
            "bytes_each": moved.unit, "before_touch": moved.before_touch,
        });
        if let Some(least) = least {
            keys = merged(keys, &json!({ "least_bytes": least, "least_unit": unit, "to_least": ratio }));
        }
        keys
    }

    /// Returns a table of the tuner's decisions in the last run, iterations by shares of local memory; none for a
    /// program without marks.
    fn decisions(&self, headings: &[String]) -> Option<(String, Table)> {
        let is_marked = |way: &Way| matches!(way, Way::Pages(size) if size == MARKED);
        let marked = self.ways.iter().position(is_marked)? * headings.len();
        let passes = |place: &Option<usize>| -> Option<Vec<Pass>> {
            let run = self.samples[(*place)?].runs.last()?;
            serde_json::from_value(run.more.get("tuned")?[0]["iterations"].clone()).ok()
        };
        let places = &self.places[marked..][..headings.len()];
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

/// Returns the lines below the rows, which compare them.
fn summary(rows: &[FarRow<'_>], sizes: &[Sizes<'_>]) -> Vec<(String, Vec<String>)> {
    let mut lines = Vec::new();
    let mut line = |name: String, cell: &dyn Fn(usize) -> Option<String>| {
        lines.push((name, (0..sizes.len()).map(|column| cell(column).unwrap_or("-".into())).collect()));
    };
    let bounded = |(ratio, measured): (f64, bool)| match measured {
        true => format!("{ratio:.2}"),
        false => format!("> {}", rounded_down(ratio)),
    };
    if rows.iter().any(|(way, _)| way.is_fixed()) {
        line("best fixed".into(), &|it| {
            sizes[it].best.map(|(size, ratio)| format!("{size} {}", times(ratio)))
        });
        line("auto to it".into(), &|it| sizes[it].auto_to_best.map(bounded));
        line("worst to auto".into(), &|it| sizes[it].worst_to_auto.map(times));
    }
    let auto = auto(rows);
    for (way, row) in rows.iter().filter(|(way, _)| matches!(way, Way::Peer(_))) {
        let ratio =
            |it: usize| Some(bounded((reached(auto?[it])? / row[it].ratio()?, auto?[it].ratio().is_some())));
        line(format!("auto to {}", way.name()), &ratio);
    }
    lines
}

/// Returns the cells of the tuner's row.
fn auto<'a>(rows: &[FarRow<'a>]) -> Option<&'a [Cell]> {
    rows.iter().find(|(way, _)| way.name() == AUTO).map(|(_, row)| *row)
}

/// Returns the ratio of a cell, or its lower bound.
fn reached(cell: Cell) -> Option<f64> {
    if let Cell::Above(bound) = cell { Some(bound) } else { cell.ratio() }
}

impl<'a> Sizes<'a> {
    fn of(rows: &[FarRow<'a>], column: usize) -> Sizes<'a> {
        let fixed = || rows.iter().filter(|(way, _)| way.is_fixed());
        let ratios = fixed().filter_map(|(way, row)| Some((way.name(), row[column].ratio()?)));
        let best = ratios.min_by(|(_, one), (_, other)| one.total_cmp(other));
        let auto = auto(rows).map(|row| row[column]);
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

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
