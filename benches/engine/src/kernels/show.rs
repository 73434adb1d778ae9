//! Shows the measurements as tables, as JSON and as a picture.

use super::NAME;
use super::case::BlasKernel;
use super::ladder::Ladder;
use super::levels::Levels;
use super::rows::{CaseRow, Time};
use largesse_plot::curves::{Axes, Panel, Series};
use largesse_terminal::table::{Column, Paper, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;

pub(super) const LEGEND: &str = "\
Cells: 1e9 operations a second; per cent of the limit; distance of the median of all turns from the best, in per cent. The limit: the level's loads (of daxpy: two loads and a store), or the processor's operations, whichever
takes longer, measured in this run. `lies`: bytes from the start of a cache line to the vectors; y - x, modulo 64 KiB.
`GB/s`: of the first column. `x`: the first column over OpenBLAS. OpenBLAS has no sum of squares: its dsumsq is ddot(x, x).
openblas and gcc -O3 give other bits, and other bits on other machines.";

/// Formats the measured limits.
pub(super) fn levels(levels: &Levels) -> String {
    let rate = |rate: Option<f64>| rate.map_or("not known".to_owned(), |rate| format!("{:.2}", rate * 1e-9));
    let mut text = format!(
        "Limits: clock {} GHz, {} GFlop/s of additions, {} of multiplications with additions.\n",
        rate(levels.clock),
        rate(levels.additions),
        rate(levels.multiply_adds)
    );
    for level in &levels.levels {
        let (read, update) = (rate(level.read), rate(level.update));
        let kib = level.measured >> 10;
        let _ = writeln!(
            text,
            "  {:6} {read} GB/s of loads, {update} of loads and stores ({kib} KiB)",
            level.name
        );
    }
    text
}

pub(super) fn levels_json(levels: &Levels) -> Value {
    let each = levels.levels.iter().map(|level| {
        json!({ "level": level.name, "bytes": level.measured, "read": level.read, "update": level.update })
    });
    json!({
        "kind": "limits", "bench": NAME, "clock": levels.clock, "additions": levels.additions,
        "multiply_adds": levels.multiply_adds, "levels": each.collect::<Vec<_>>(),
    })
}

/// Returns a table for each kernel.
pub(super) fn tables(rows: &[CaseRow], paper: Paper) -> String {
    let kernels =
        BlasKernel::ALL.into_iter().filter(|kernel| rows.iter().any(|row| row.case.kernel == *kernel));
    kernels.map(|kernel| table(kernel, rows, paper)).collect::<Vec<_>>().join("\n")
}

fn table(kernel: BlasKernel, rows: &[CaseRow], paper: Paper) -> String {
    let rows: Vec<&CaseRow> = rows.iter().filter(|row| row.case.kernel == kernel).collect();
    let mut names: Vec<&str> = Vec::new();
    for time in rows.iter().flat_map(|row| &row.times) {
        if !names.contains(&time.name) {
            names.push(time.name);
        }
    }
    let mut columns = vec![Column::number(kernel.name()), Column::number("level"), Column::number("lies")];
    // The first column is Largesse's; of the others the last is left out first.
    columns.extend(names.iter().enumerate().map(|(place, name)| {
        let column = Column::number(*name);
        if place == 0 { column } else { column.spare(1) }
    }));
    columns.extend([Column::number("GB/s").spare(2), Column::number("x")]);
    let mut table = Table::new(columns);
    for row in &rows {
        let lies = if kernel.vectors() == 2 {
            format!("{} {:+}", row.case.shift, row.offset)
        } else {
            row.case.shift.to_string()
        };
        let mut cells = vec![row.case.n.to_string(), row.level.to_owned(), lies];
        cells.extend(names.iter().map(|name| row.time(name).map_or("-".to_owned(), |time| cell(row, time))));
        let first = row.times.first();
        cells.push(first.map_or("-".to_owned(), |time| format!("{:.1}", row.gigabytes(*time))));
        let blas = row.time("openblas").zip(first).map(|(blas, first)| blas.best / first.best);
        cells.push(blas.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")));
        table.row(cells);
    }
    let mut text = format!("{}\n{}\n", kernel.formula(), table.show(paper));
    for wrong in rows.iter().flat_map(|row| &row.wrong) {
        let what = if wrong.ours { "WRONG" } else { "left out, its answer is wrong" };
        let _ = writeln!(text, "{}: {what}: {}", wrong.name, wrong.how);
    }
    text
}

fn cell(row: &CaseRow, time: Time) -> String {
    let of_limit = row.per_cent(time).map_or(String::new(), |per_cent| format!(" {per_cent:.0}%"));
    format!("{:.2}{of_limit} +{:.0}", row.gflops(time), 100.0 * time.spread)
}

pub(super) fn row_json(row: &CaseRow) -> Vec<Value> {
    let case = &row.case;
    let times = row.times.iter().map(|time| {
        json!({
            "kind": "line", "bench": NAME, "kernel": case.kernel.name(), "n": case.n, "level": row.level,
            "shift": case.shift, "offset": row.offset, "who": time.name, "seconds": time.best, "spread": time.spread,
            "gflops": row.gflops(*time), "gigabytes": row.gigabytes(*time), "per_cent": row.per_cent(*time),
        })
    });
    let wrong = row.wrong.iter().map(|wrong| match wrong.ours {
        true => json!({ "kind": "trouble", "bench": NAME, "who": wrong.name, "text": wrong.how }),
        false => json!({ "kind": "left out", "bench": NAME, "who": wrong.name, "text": wrong.how }),
    });
    times.chain(wrong).collect()
}

pub(super) fn ladder(ladder: &Ladder) -> String {
    let mut text = String::from(
        "The sum of 1024 doubles, step by step (GFlop/s, per cent of the processor's additions):\n",
    );
    for step in &ladder.steps {
        let per_cent = step.per_cent.map_or(String::new(), |per_cent| format!("{per_cent:5.1}%"));
        let _ =
            writeln!(text, "  {:26} {:6.2} {per_cent} +{:.0}", step.name, step.gflops, 100.0 * step.spread);
    }
    text +=
        "  On the HA8000 (Opteron 8356, of 4.6): gcc 0.575, SSE2 with 1 accumulator 1.15, with 4 4.05: 88%\n";
    if let Some((add, multiply)) = ladder.cycles {
        let _ = writeln!(
            text,
            "Ten operations, each waiting for the one before: {:.0} cycles of additions, {:.0} of multiplications.\n\
             \x20 On the HA8000 40 and 40, when compiled with -O2.",
            10.0 * add,
            10.0 * multiply
        );
    }
    text
}

pub(super) fn ladder_json(ladder: &Ladder) -> Vec<Value> {
    let steps = ladder.steps.iter().map(|step| {
        json!({
            "kind": "ladder", "bench": NAME, "step": step.name, "gflops": step.gflops, "per_cent": step.per_cent,
            "spread": step.spread,
        })
    });
    let latency = ladder.cycles.map(|(add, multiply)| {
        json!({ "kind": "latency", "bench": NAME, "addition": add, "multiplication": multiply, "gigahertz": ladder.gigahertz })
    });
    steps.chain(latency).collect()
}

/// Draws a panel for each kernel: operations a second over the size of the vectors, below the limit.
pub(super) fn picture(rows: &[CaseRow], levels: &Levels, machine: &str) -> Result<String, String> {
    let panel = |kernel: BlasKernel| {
        let rows: Vec<&CaseRow> =
            rows.iter().filter(|row| row.case.kernel == kernel && row.case.shift == 0).collect();
        let mut series: Vec<Series> = Vec::new();
        for row in &rows {
            for time in &row.times {
                let point = (row.case.footprint() as f64, row.gflops(*time));
                match series.iter_mut().find(|one| one.name == time.name) {
                    Some(one) => one.points.push(point),
                    None => series.push(Series { name: time.name.to_owned(), points: vec![point] }),
                }
            }
        }
        let limit = |row: &&CaseRow| {
            let flops = row.case.kernel.flops() * row.case.n as f64;
            row.limit.map(|seconds| (row.case.footprint() as f64, flops / seconds * 1e-9))
        };
        let limit = rows.iter().filter_map(limit).collect();
        let title = format!("{}: {}", kernel.name(), kernel.formula());
        Panel { title, axes: Axes::Speed, limit, series }
    };
    let here = BlasKernel::ALL.into_iter().filter(|kernel| rows.iter().any(|row| row.case.kernel == *kernel));
    let panels: Vec<Panel> = here.map(panel).collect();
    let walls: Vec<(f64, &str)> = levels
        .levels
        .iter()
        .filter(|level| level.size != usize::MAX)
        .map(|level| (level.size as f64, level.name))
        .collect();
    largesse_plot::curves::svg(machine, &panels, &walls)
}
