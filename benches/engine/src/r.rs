//! Compares R, or another interpreter, under Largesse and other allocators: `largesse bench r`.
//!
//! Rows are the tests of a program, their total and the peak of resident memory. Columns are settings: the baseline
//! twice, which shows the noise, and then the others. No time is printed of an answer that was not found right.

use crate::args::Args;
use crate::engine::*;
use largesse_terminal::say::counted;
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// A bench, and the settings of its columns in order: the baseline, the baseline again, and the others.
struct LineUp<'a> {
    args: &'a Args,
    bench: &'a Bench,
    settings: &'a Settings,
    line_up: Vec<&'a Setting>,
    /// Settings that are not possible on this machine.
    absent: Vec<&'a Setting>,
}

/// Runs the chosen benches. Returns whether everything ran and every answer agrees.
pub(crate) fn compare(args: &Args, root: &Path, benches: &[Bench], settings: &Settings) -> Result<bool> {
    let mut plans = Vec::new();
    for bench in benches {
        let chosen = settings.of(bench, args.peers.is_some())?;
        let is_here = |setting: &&Setting| settings.missing(setting).is_none();
        let (mut line_up, absent): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_here);
        line_up.insert(0, line_up[0]);
        plans.push(LineUp { args, bench, settings, line_up, absent });
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

impl LineUp<'_> {
    fn contestants(&self, root: &Path) -> Vec<Contestant<'_, Run>> {
        let words = self.bench.words(root, self.args.scale, Some(self.args.times.unwrap_or(1)));
        let touch = self.args.touch.unwrap_or_else(|| self.bench.needed_mib(self.args.scale));
        let contestant = |place| {
            let words = words.clone();
            let start = move || {
                touch_mib(touch)?;
                let mut command = self.settings.command(self.line_up[place], &[], &[], &words);
                command.env(TOUCH_VARIABLE, touch_command(touch));
                let needs = &self.bench.needs;
                run(command, Duration::MAX).map_err(|ended| match ended {
                    Ended::Failed(why) if place < 2 => Ended::Failed(format!("{why}; needed: {needs}")),
                    other => other,
                })
            };
            Contestant { needs: vec![0, 1], ..Contestant::new(self.column(place), start) }
        };
        (0..self.line_up.len()).map(contestant).collect()
    }

    fn column(&self, place: usize) -> String {
        format!("{}{}", self.line_up[place].name, if place == 1 { " again" } else { "" })
    }

    /// Judges every answer. Returns the values of each column, line by line, and the messages on failures.
    fn judged(&self, samples: &[Samples<Run>]) -> (Vec<Vec<Values>>, Vec<String>) {
        let (bench, mut failures, mut columns) = (self.bench, Vec::new(), Vec::new());
        for sample in samples {
            let column = &sample.name;
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
        (columns, failures)
    }

    /// Compares the times of right answers, and returns the outcome of the bench.
    fn outcome(&self, samples: &[Samples<Run>]) -> Outcome {
        let (bench, (columns, failures)) = (self.bench, self.judged(samples));
        let subject = self.line_up.iter().position(|it| it.role == Role::Subject).unwrap_or(0);
        let mut heads = vec![Column::text(bench.name.clone(), 8)];
        for (place, setting) in self.line_up.iter().enumerate() {
            let head = Column::number(if place == 1 { "noise" } else { &*setting.name });
            // Stock, its noise and the subject are always shown; peers are left out first.
            heads.push(if place <= subject.max(1) { head } else { head.spare(1) });
        }
        let peers: Vec<_> =
            (0..columns.len()).filter(|place| self.line_up[*place].role == Role::Peer).collect();
        heads.extend((!peers.is_empty()).then(|| Column::number("to best peer")));
        heads.push(Column::words("reading", 10));
        let (mut table, mut objects) = (Table::new(heads), Vec::new());
        let mut lines: Vec<_> = bench.tests.iter().map(|test| (&*test.name, "s", "time")).collect();
        lines.extend([("total", "s", "time"), ("peak memory", "KiB", "memory")]);
        for (row, (line, unit, of)) in lines.into_iter().enumerate() {
            let values = |place: usize| columns[place][row].as_deref().ok();
            let baseline = values(0).and_then(Summary::of);
            let cells: Vec<_> = columns.iter().map(|column| Cell::of(&column[row], baseline)).collect();
            let noise = values(0).zip(values(1)).and_then(|(first, again)| noise(first, again));
            let best = peers.iter().filter_map(|&place| Some((place, cells[place].ratio()?)));
            let best = best.min_by(|(_, one), (_, other)| one.total_cmp(other));
            let mut shown = vec![line.to_owned()];
            shown.extend((0..cells.len()).map(|place| text(place, &cells[place], unit, noise)));
            if !peers.is_empty() {
                let to_best = best.zip(cells[subject].ratio());
                shown.push(to_best.map_or("-".into(), |((place, best), ratio)| {
                    format!("{} {:.3}", self.line_up[place].name, ratio / best)
                }));
            }
            shown.push(reading(&cells, subject, noise, of));
            table.row(shown);
            for (place, cell) in cells.iter().enumerate() {
                let mut keys = json!({
                    "kind": "line", "bench": bench.name, "line": line, "setting": self.column(place),
                    "unit": unit, "noise": noise,
                });
                if cell.summary().is_some() {
                    keys["ratio"] = Value::Null;
                    keys["to_best_peer"] = best.zip(cell.ratio()).map(|((_, best), it)| it / best).into();
                }
                objects.push(merged(keys, &json!(cell)));
            }
        }
        let title = bench.headline(self.args.scale, samples[0].about());
        let expected = |name| bench.expected(name, self.args.scale).is_some();
        let unchecked = bench.tests.iter().filter(|test| !expected(&test.name)).count();
        let mut below = String::from("\n");
        if unchecked > 0 {
            let tests = counted(unchecked as u64, "test");
            let _ = write!(below, "The definition has no expected answer for {tests} at this size: ");
            below += "only that all agree to the bit was checked.\n";
        }
        Outcome { below, objects, failures, ..Outcome::new(&bench.name, title, table) }
    }
}

/// Returns in words how the cell `subject` compares with the baseline. `of` names the quantity.
fn reading(cells: &[Cell], subject: usize, noise: Option<f64>, of: &str) -> String {
    let runs = cells.iter().filter_map(|cell| Some(cell.summary()?.runs)).min().unwrap_or(0);
    match (&cells[subject], noise) {
        (Cell::Wrong, _) => "WRONG".into(),
        (Cell::Measured { ratio: Some(_), .. }, Some(_)) if runs < 3 => {
            no_claim(runs).unwrap_or_default().into()
        }
        (Cell::Measured { ratio: Some(ratio), .. }, Some(noise)) => match ratio - 1.0 {
            apart if apart.abs() <= noise => "no difference seen".into(),
            apart if apart < 0.0 => format!("{:.1}% less {of}", -100.0 * apart),
            apart => format!("{:.1}% more {of}", 100.0 * apart),
        },
        (Cell::Measured { .. }, _) => "nothing to compare with".into(),
        _ => "not run".into(),
    }
}

/// Returns the text of the cell in column `place`: the baseline's value, the noise, or a ratio.
fn text(place: usize, cell: &Cell, unit: &str, noise: Option<f64>) -> String {
    match (place, cell) {
        (1, _) => noise.map_or("-".into(), |noise| format!("±{:.1}%", noise * 100.0)),
        (0, Cell::Measured { summary: it, .. }) if unit == "s" => {
            it.spread_after(format!("{:.4} s", it.median))
        }
        (0, Cell::Measured { summary: it, .. }) => it.spread_after(format!("{:.0} MiB", it.median / 1024.0)),
        (_, Cell::Measured { summary: it, ratio: Some(ratio) }) => it.spread_after(format!("{ratio:.3}")),
        (_, other) => other.word(),
    }
}
