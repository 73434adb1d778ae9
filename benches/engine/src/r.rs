//! Compares R, or another interpreter, under Largesse and other allocators: `largesse bench r`.
//!
//! Rows are the tests of a program, their total and the peak of resident memory. Columns are settings: the baseline
//! twice, whose distance is the noise, then the others. No time is printed of an answer that was not found right.

use crate::args::Args;
use crate::engine::*;
use largesse_terminal::say::counted;
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// A bench and the settings of its columns: the baseline, the baseline again, and the others.
struct Plan<'a> {
    args: &'a Args,
    bench: &'a Bench,
    settings: &'a Settings,
    line_up: Vec<&'a Setting>,
    /// Settings that are not possible here.
    absent: Vec<&'a Setting>,
}

/// One line of the table.
struct Line<'a> {
    name: &'a str,
    /// Unit of its values, and what there is less of if they are smaller.
    unit: &'static str,
    of: &'static str,
    /// Cells in the order of the settings; the first is the baseline's.
    cells: Vec<Cell>,
    /// Least distance of a ratio from 1 that counts as a difference.
    noise: Option<f64>,
}

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(crate) fn compare(args: &Args, root: &Path, benches: &[Bench], settings: &Settings) -> Result<bool> {
    let mut plans = Vec::new();
    for bench in benches {
        let chosen = settings.of(bench, args.peers)?;
        let is_here = |setting: &&Setting| settings.missing(setting).is_none();
        let (mut line_up, absent): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_here);
        line_up.insert(0, line_up[0]);
        plans.push(Plan { args, bench, settings, line_up, absent });
    }
    let columns: usize = plans.iter().map(|plan| plan.line_up.len()).sum();
    let mut session = Session::begin(args, root, args.scale, columns * args.rounds() as usize);
    let mut peers = BTreeMap::new();
    for plan in &plans {
        let (bench, installed) = (&plan.bench.name, plan.line_up.iter().filter(|it| it.role == Role::Peer));
        peers.extend(installed.map(|setting| (&setting.name, &setting.title)));
        for setting in &plan.absent {
            let (name, why) = (&setting.name, settings.missing(setting).unwrap_or_default());
            session.absent(bench, Some(name), &why, &format!("{bench}: {name}: {why}"));
        }
        if session.has_room(bench, plan.bench.needed_mib(args.scale)) {
            let samples = session.rounds(bench, &plan.contestants(root), None);
            session.show(&plan.outcome(&samples));
        }
    }
    let peers: String = peers.iter().map(|(name, title)| format!("{name}: {title}.\n")).collect();
    session.end(&(include_str!("legends/r.txt").to_owned() + &peers), &[], &[])
}

impl Plan<'_> {
    fn contestants(&self, root: &Path) -> Vec<Contestant<'_, Run>> {
        let words = self.bench.words(root, self.args.scale, Some(self.args.times.unwrap_or(1)));
        let touch = self.args.touch.unwrap_or_else(|| self.bench.needed_mib(self.args.scale));
        let contestant = |place| {
            let words = words.clone();
            let start = move || {
                let mut command = self.settings.command(self.line_up[place], &[], &words);
                command.env(TOUCH_VARIABLE, touch_command(touch));
                run(command, Duration::MAX).map_err(|ended| match ended {
                    Ended::Failed(why) if place < 2 => {
                        Ended::Failed(format!("{why}; needed: {}", self.bench.needs))
                    }
                    other => other,
                })
            };
            let set_up = Box::new(move || touch_mib(touch));
            Contestant { needs: vec![0, 1], set_up, ..Contestant::new(self.column(place), start) }
        };
        (0..self.line_up.len()).map(contestant).collect()
    }

    fn column(&self, place: usize) -> String {
        format!("{}{}", self.line_up[place].name, if place == 1 { " again" } else { "" })
    }

    fn is_peer(&self, place: usize) -> bool {
        self.line_up[place].role == Role::Peer
    }

    /// Judges every answer, then compares the times of right ones. Returns the lines and what failed.
    fn lines(&self, samples: &[Samples<Run>]) -> (Vec<Line<'_>>, Vec<String>) {
        let (bench, mut failures, mut columns) = (self.bench, Vec::new(), Vec::new());
        for (place, sample) in samples.iter().enumerate() {
            let column = self.column(place);
            if let Some(Ended::Failed(why)) = &sample.ended {
                failures.push(format!("{}: could not run under {column}: {why}", bench.name));
            }
            let Some(baseline) = samples[0].runs.first().filter(|_| sample.ended.is_none()) else {
                columns.push(vec![Err(Cell::Absent); bench.tests.len() + 2]);
                continue;
            };
            let judged = |test: &str| {
                sample.seconds(bench, test, self.args.scale, baseline).map_err(|why| {
                    failures.push(format!("WRONG: {}/{test} under {column}: {why}", bench.name));
                    Cell::Wrong
                })
            };
            let mut values: Vec<Values> = bench.tests.iter().map(|test| &*test.name).map(judged).collect();
            let total = |run: usize| values.iter().map(|test| Ok(test.clone()?[run])).sum();
            values.push((0..sample.runs.len()).map(total).collect());
            values.push(Ok(sample.runs.iter().map(|run| run.peak.peak_kb + run.peak.hugetlb_kb).collect()));
            columns.push(values);
        }
        failures.sort_by_key(|why| why.starts_with("WRONG"));
        let times =
            bench.tests.iter().map(|test| &*test.name).chain(["total"]).map(|name| (name, "s", "time"));
        let lines =
            times.chain([("peak memory", "KiB", "memory")]).enumerate().map(|(row, (name, unit, of))| {
                let values = |place: usize| columns[place][row].as_deref().ok();
                let baseline = values(0).and_then(Summary::of);
                let cell = |column: &Vec<Values>| match &column[row] {
                    Ok(values) => Cell::of(values, baseline),
                    Err(cell) => *cell,
                };
                let noise = values(0).zip(values(1)).and_then(|(first, again)| noise(first, again));
                Line { name, unit, of, cells: columns.iter().map(cell).collect(), noise }
            });
        (lines.collect(), failures)
    }

    fn outcome(&self, samples: &[Samples<Run>]) -> Outcome {
        let (bench, (lines, failures)) = (self.bench, self.lines(samples));
        let subject = self.line_up.iter().position(|it| it.role == Role::Subject).unwrap_or(0);
        let mut columns = vec![Column::text(bench.name.clone(), 8)];
        for (place, setting) in self.line_up.iter().enumerate() {
            let column = Column::number(if place == 1 { "noise" } else { &*setting.name });
            // Stock, its noise and the subject are always shown; peers are left out first.
            columns.push(if place <= subject.max(1) { column } else { column.spare(1) });
        }
        let peers = (0..self.line_up.len()).any(|place| self.is_peer(place));
        columns.extend(peers.then(|| Column::number("to best peer")));
        columns.push(Column::words("reading", 10));
        let (mut table, mut objects) = (Table::new(columns), Vec::new());
        for line in &lines {
            let best = (0..line.cells.len()).filter(|place| self.is_peer(*place));
            let best = best.filter_map(|place| Some((place, line.cells[place].ratio()?)));
            let best = best.min_by(|(_, one), (_, other)| one.total_cmp(other));
            let mut row = vec![line.name.to_owned()];
            row.extend((0..line.cells.len()).map(|place| line.cell(place)));
            if peers {
                let to_best = best.zip(line.cells[subject].ratio());
                row.push(to_best.map_or("-".into(), |((place, best), ratio)| {
                    format!("{} {:.3}", self.line_up[place].name, ratio / best)
                }));
            }
            row.push(line.reading(subject));
            table.row(row);
            for (place, cell) in line.cells.iter().enumerate() {
                let mut keys = json!({
                    "kind": "line", "bench": bench.name, "line": line.name, "setting": self.column(place),
                    "unit": line.unit, "noise": line.noise,
                });
                if cell.summary().is_some() {
                    keys["ratio"] = Value::Null;
                    keys["to_best_peer"] = best.zip(cell.ratio()).map(|((_, best), it)| it / best).into();
                }
                objects.push(cell.object(keys));
            }
        }
        let title = bench.headline(self.args.scale, samples[0].about());
        let expected = |name| bench.expected(name, self.args.scale).is_some();
        let unchecked = bench.tests.iter().filter(|test| !expected(&test.name)).count();
        let mut below = String::from("\n");
        if unchecked > 0 {
            let _ = writeln!(
                below,
                "The definition has no expected answer for {} at this size: only that all agree to the bit was checked.",
                counted(unchecked as u64, "test")
            );
        }
        Outcome { below, objects, failures, ..Outcome::new(&bench.name, title, table) }
    }
}

impl Line<'_> {
    /// Returns the verdict on the cell `subject` in words.
    fn reading(&self, subject: usize) -> String {
        let runs = self.cells.iter().filter_map(|cell| Some(cell.summary()?.runs)).min().unwrap_or(0);
        match (&self.cells[subject], self.noise) {
            (Cell::Wrong, _) => "WRONG".into(),
            (Cell::Measured(_, Some(_)), Some(_)) if no_claim(runs).is_some() => {
                no_claim(runs).unwrap_or_default().into()
            }
            (Cell::Measured(_, Some(ratio)), Some(noise)) => match ratio - 1.0 {
                apart if apart.abs() <= noise => "no difference seen".into(),
                apart if apart < 0.0 => format!("{:.1}% less {}", -100.0 * apart, self.of),
                apart => format!("{:.1}% more {}", 100.0 * apart, self.of),
            },
            (Cell::Measured(..), _) => "nothing to compare with".into(),
            _ => "not run".into(),
        }
    }

    fn cell(&self, place: usize) -> String {
        match (place, &self.cells[place]) {
            (1, _) => self.noise.map_or("-".into(), |noise| format!("±{:.1}%", noise * 100.0)),
            (0, Cell::Measured(it, _)) if self.unit == "s" => it.spread_after(format!("{:.4} s", it.median)),
            (0, Cell::Measured(it, _)) => it.spread_after(format!("{:.0} MiB", it.median / 1024.0)),
            (_, Cell::Measured(it, Some(ratio))) => it.spread_after(format!("{ratio:.3}")),
            (_, other) => other.word(),
        }
    }
}
