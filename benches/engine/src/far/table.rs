//! Makes the outcome of one far bench: slowdowns by page size and share of local memory, and the tuner's decisions.

use super::least::Trace;
use super::moved::{self, Place, mib};
use super::plan::{FarColumn, FarPlan, Way};
use crate::args::{AUTO, MARKED};
use crate::engine::*;
use largesse_settings::Short;
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};

/// Returns the tables and JSON objects of a bench. `samples` begins with stock and stock again, and then has the cells
/// row by row. Contestants with a wrong answer are named in the failures, and their times are not compared.
pub(super) fn outcome(
    plan: &FarPlan<'_>,
    data: u64,
    columns: &[FarColumn],
    samples: &[Samples<Run>],
    trace: Option<&Trace>,
) -> Outcome {
    let (bench, test, mut failures) = (&plan.bench.name, &plan.bench.tests[0].name, Vec::new());
    let seconds = |place| seconds(plan, place, samples, &mut failures);
    let values: Vec<Values> = (0..samples.len()).map(seconds).collect();
    failures.sort_by_key(|why| why.starts_with("WRONG"));
    let [stock, again] = [0, 1].map(|place| values[place].as_deref().unwrap_or_default());
    let (baseline, noise) = (Summary::of(stock), noise(stock, again));
    let cell = |values: &Values| match values {
        Ok(_) if baseline.is_none() => Cell::Absent,
        values => Cell::of(values, baseline),
    };
    let keys = plan.ways.iter().flat_map(|way| columns.iter().map(move |column| (way, *column)));
    let results = values.iter().zip(samples).skip(2).map(|(values, of)| (cell(values), of.runs.last()));
    let place = |((way, column), (cell, last))| Place { way, column, cell, last };
    let places: Vec<Place<'_>> = keys.zip(results).map(place).collect();
    let rows: Vec<_> = places.chunks(columns.len()).collect();
    let headings: Vec<_> = columns.iter().map(|column| format!("{}%", column.percent)).collect();

    let mut title = plan.bench.headline(plan.args.scale, samples[0].about()) + "\nstock: ";
    title += &baseline.map_or("-".into(), |stock| stock.spread_after(format!("{:.4} s", stock.median)));
    if let Some(noise) = noise {
        title += &format!(", noise ±{:.1}%", noise * 100.0);
    }
    title += &format!("; touches {:.1} MiB; store {}\n", mib(data), plan.args.store());
    title +=
        if plan.guard.is_some() { "slowdown, by limit of the group" } else { "slowdown, by local memory" };

    let stock = baseline.map(|stock| merged(json!({ "noise": noise }), &json!(stock)));
    let mut objects = vec![json!({ "kind": "stock", "bench": bench, "test": test, "stock": stock })];
    let mut moved = Vec::new();
    for place in &places {
        let object = json!({
            "kind": "cell", "bench": bench, "test": test, "local_percent": place.column.percent,
        });
        let (row, keys) = moved::row(place, data, trace).unzip();
        moved.extend(row);
        objects.push([json!(place.way), json!(place.cell), json!(keys)].iter().fold(object, merged));
    }
    let mut lines: Vec<_> =
        rows.iter().map(|row| (row[0].way.name().to_owned(), texts(row, shown))).collect();
    let (summary, best) = summary(&rows);
    let last = summary.len();
    lines.extend(summary);
    objects.extend(best.into_iter().map(|best| merged(best, &json!({ "kind": "best", "bench": bench }))));
    let mut table = table(Column::text(bench, 8), &headings, lines);
    table.apart(last);
    let last = decisions(&rows, &headings).into_iter().chain(moved::table(moved)).collect();
    let below = plan.spec.published.clone().unwrap_or_default();
    Outcome { below, last, objects, failures, ..Outcome::new(bench, title, table) }
}

/// Returns the seconds of each run of the contestant with index `place`, or the cell to show instead.
fn seconds(plan: &FarPlan<'_>, place: usize, all: &[Samples<Run>], failures: &mut Vec<String>) -> Values {
    let (bench, sample, stock, cap) = (plan.bench, &all[place], &all[0].runs, plan.args.limit());
    let label = format!("{}, {}", bench.name, sample.name);
    failures.extend(match &sample.ended {
        Some(Ended::Stopped) if place < 2 => {
            Ended::Failed(format!("stopped after {cap} s; give more with --cap")).message(&label)
        }
        ended => ended.as_ref().and_then(|ended| ended.message(&label)),
    });
    let baseline = stock.first().ok_or(Cell::Absent)?;
    let right = sample.seconds(bench, &bench.tests[0].name, plan.args.scale, baseline).map_err(|why| {
        failures.push(format!("WRONG: {label}: {why}"));
        Cell::Wrong
    })?;
    match &sample.ended {
        None => Ok(right),
        Some(Ended::Stopped) => {
            // As a multiple of the whole stock run.
            let whole = Summary::of(&stock.iter().map(|run| run.took.as_secs_f64()).collect::<Vec<_>>());
            let whole = whole.map_or(1e-3, |whole| whole.median.max(1e-3));
            Err(Cell::Stopped { above: Some(f64::from(cap) / whole) })
        }
        Some(ended) => Err(ended.cell()),
    }
}

/// Returns the lines below the rows, which compare the rows, and the JSON objects of the best fixed page sizes.
fn summary(rows: &[&[Place<'_>]]) -> (Vec<(String, Vec<String>)>, Vec<Value>) {
    let (mut lines, mut objects) = (Vec::new(), Vec::new());
    let auto = rows.iter().find(|row| row[0].way.name() == AUTO);
    let auto = |column: usize| auto.map_or(Cell::Absent, |row| row[column].cell);
    let fixed: Vec<_> = rows.iter().filter(|row| row[0].way.is_fixed()).collect();
    if !fixed.is_empty() {
        let mut three = [("best fixed", vec![]), ("auto to it", vec![]), ("worst to auto", vec![])];
        for column in 0..fixed[0].len() {
            let ratios = fixed.iter().filter_map(|row| Some((row[0].way.name(), row[column].cell.ratio()?)));
            let best = ratios.min_by(|(_, one), (_, other)| one.total_cmp(other));
            let worst = fixed.iter().filter_map(|row| row[column].cell.reached()).max_by(f64::total_cmp);
            three[0].1.push(best.map(|(size, ratio)| format!("{size} {}", times(ratio))));
            three[1].1.push(best.and_then(|(_, ratio)| over(auto(column), ratio)));
            three[2].1.push(worst.zip(auto(column).ratio()).map(|(worst, auto)| times(worst / auto)));
            let Some((size, ratio)) = best else { continue };
            let percent = fixed[0][column].column.percent;
            let mut object = json!({ "local_percent": percent, "page_size": size, "ratio": ratio });
            if let Some(reached) = auto(column).reached() {
                let is_measured = auto(column).ratio().is_some();
                object[if is_measured { "auto_to_best" } else { "auto_to_best_above" }] =
                    (reached / ratio).into();
            }
            objects.push(object);
        }
        lines.extend(three.map(|(name, cells)| (name.to_owned(), cells)));
    }
    for row in rows.iter().filter(|row| matches!(row[0].way, Way::Peer(_))) {
        let to_peer = |(column, place): (usize, &Place<'_>)| over(auto(column), place.cell.ratio()?);
        let cells = row.iter().enumerate().map(to_peer).collect();
        lines.push((format!("auto to {}", row[0].way.name()), cells));
    }
    let lines = lines.into_iter();
    let or_none = |cell: &Option<String>| cell.clone().unwrap_or("-".into());
    (lines.map(|(name, cells)| (name, texts(&cells, or_none))).collect(), objects)
}

/// Returns a table of the tuner's decisions in the last run: rows are iterations of the compute core, columns are
/// shares of local memory. Returns `None` for a program that marks no compute core.
fn decisions(rows: &[&[Place<'_>]], headings: &[String]) -> Option<(String, Table)> {
    let marked = rows.iter().find(|row| row[0].way.name() == MARKED)?;
    // The tuner reports for each iteration the number of bytes of a transfer unit, the numbers of units that were
    // filled and that fit into local memory, and seconds.
    let passes = marked.iter().map(|place| place.last?.more.get("tuned")?[0]["iterations"].as_array());
    let columns: Vec<_> = passes.map(|passes| passes.map_or(&[][..], Vec::as_slice)).collect();
    let most = columns.iter().map(|passes| passes.len()).max().filter(|most| *most > 0)?;
    let cell = |pass: &Value| {
        let size = pass["set_bytes"].as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        let (size, seconds) = (Short(size.unwrap_or(usize::MAX)), pass["seconds"].as_f64().unwrap_or(0.0));
        format!("{size} {}/{} {seconds:.2}", pass["working_set"], pass["local_sets"])
    };
    let row = |turn: usize| {
        let cells = texts(&columns, |passes| passes.get(turn).map_or("-".into(), cell));
        ((turn + 1).to_string(), cells)
    };
    let table = table(Column::number("iteration"), headings, (0..most).map(row));
    Some(("marked: page size, sets swapped in/sets that fit, seconds (last run)".into(), table))
}

/// Makes a table with a column for each heading. Where the terminal is too narrow, the last columns, which have the
/// smallest shares of local memory, are left out first.
fn table(first: Column, headings: &[String], rows: impl IntoIterator<Item = (String, Vec<String>)>) -> Table {
    let columns = headings.iter().map(|heading| Column::number(heading).spare(1));
    let mut table = Table::new([first].into_iter().chain(columns));
    rows.into_iter().for_each(|(name, cells)| table.row([name].into_iter().chain(cells)));
    table
}

fn texts<T>(all: &[T], text: impl Fn(&T) -> String) -> Vec<String> {
    all.iter().map(text).collect()
}

fn shown(place: &Place<'_>) -> String {
    match place.cell {
        Cell::Measured { summary, ratio: Some(ratio) } => summary.with_spread(times(ratio)),
        Cell::Stopped { above: Some(bound) } => format!("> {}x", rounded_down(bound)),
        other => other.word(),
    }
}

/// Formats the ratio of a cell, or its lower bound, divided by another ratio.
fn over(cell: Cell, ratio: f64) -> Option<String> {
    let over = cell.reached()? / ratio;
    Some(if cell.ratio().is_some() { format!("{over:.2}") } else { format!("> {}", rounded_down(over)) })
}

/// Formats a ratio with three significant digits: `1.02x`, `12.3x`, `1811x`.
fn times(ratio: f64) -> String {
    match ratio {
        ..9.995 => format!("{ratio:.2}x"),
        ..99.95 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.0}x"),
    }
}

/// Formats a lower bound. It is rounded down, so that it is still a lower bound.
fn rounded_down(bound: f64) -> String {
    let (digits, unit) = if bound < 10.0 { (1, 10.0) } else { (0, 1.0) };
    format!("{:.digits$}", (bound * unit).floor() / unit)
}
