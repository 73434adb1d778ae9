//! Prints the outcome as a table for people.

use super::outcome::{Cell, Outcome, TableLine, Unit};
use super::settings::Role;
use largesse_terminal::say::counted;
use largesse_terminal::table::{Column, Paper, Table};
use std::fmt::Write as _;

/// Returns the table of one bench below its title, with the failures.
pub(super) fn show(outcome: &Outcome<'_>, scale: f64, paper: Paper) -> String {
    let bench = outcome.bench;
    let peers = outcome.contestants.iter().any(|one| one.setting.role == Role::Peer);
    let mut columns = vec![Column::text(bench.name.clone(), 8)];
    for (place, one) in outcome.contestants.iter().enumerate() {
        let name = if one.again { "noise".to_owned() } else { one.name() };
        // Stock, its noise and the subject are always shown; peers are left out first.
        let column = Column::number(name);
        columns.push(if place <= outcome.subject().max(1) { column } else { column.spare(1) });
    }
    if peers {
        columns.push(Column::number("to best peer"));
    }
    columns.push(Column::words("reading", 10));
    let mut table = Table::new(columns);
    outcome.lines.iter().for_each(|line| table.row(row(outcome, line, peers)));
    let size = of_size(scale);
    let about = if outcome.about.is_empty() { String::new() } else { format!(" ({})", outcome.about) };
    let mut text = format!("{}{size}{about}\n{}\n", bench.title, table.show(paper));
    let unchecked = bench.tests.iter().filter(|test| bench.expected(&test.name, scale).is_none()).count();
    if unchecked > 0 {
        let _ = writeln!(
            text,
            "The definition has no expected answer for {} at this size: only that all agree to the bit was checked.",
            counted(unchecked as u64, "test")
        );
    }
    for failure in &outcome.failures {
        let _ = writeln!(text, "{failure}");
    }
    paper.page(&text)
}

/// Returns words on the share of the data; none if it is 1.
pub(super) fn of_size(scale: f64) -> String {
    if (scale - 1.0).abs() < 1e-9 { String::new() } else { format!(", at {scale} of its size") }
}

fn row(outcome: &Outcome<'_>, line: &TableLine, peers: bool) -> Vec<String> {
    let mut row = vec![line.name.clone()];
    for (place, (cell, one)) in line.cells.iter().zip(&outcome.contestants).enumerate() {
        row.push(match (place, one.again) {
            (0, _) => absolute(cell, line.unit),
            (_, true) => line.noise.map_or("-".into(), |noise| format!("±{:.1}%", noise * 100.0)),
            _ => relative(cell),
        });
    }
    if peers {
        let best = line.best_peer(&outcome.contestants);
        let to_best =
            best.and_then(|(place, ratio)| Some((place, line.cells[outcome.subject()].ratio()? / ratio)));
        row.push(to_best.map_or("-".into(), |(place, ratio)| {
            format!("{} {ratio:.3}", outcome.contestants[place].name())
        }));
    }
    row.push(line.reading(outcome.subject()));
    row
}

fn absolute(cell: &Cell, unit: Unit) -> String {
    match (cell, unit) {
        (Cell::Measured { summary, .. }, Unit::Seconds) => {
            format!("{:.4} s ({:.0}%)", summary.median, summary.spread * 100.0)
        }
        (Cell::Measured { summary, .. }, Unit::Kib) => {
            format!("{:.0} MiB ({:.0}%)", summary.median / 1024.0, summary.spread * 100.0)
        }
        (other, _) => relative(other),
    }
}

fn relative(cell: &Cell) -> String {
    match cell {
        Cell::Measured { summary, ratio: Some(ratio) } => {
            format!("{ratio:.3} ({:.0}%)", summary.spread * 100.0)
        }
        Cell::Measured { .. } | Cell::Absent => "-".into(),
        Cell::Wrong => "WRONG".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::with_outcome;
    use super::*;

    #[test]
    fn ratios_noise_and_the_best_peer_are_shown() {
        let samples: &[(&[f64], &str)] =
            &[(&[1.0; 3], "a"), (&[1.02; 3], "a"), (&[0.8; 3], "a"), (&[0.9; 3], "a"), (&[0.5; 3], "b")];
        let text = with_outcome(samples, |outcome| {
            show(outcome, 1.0, Paper { columns: None, unicode: true, boxes: true })
        });
        let line = text.lines().find(|line| line.contains("toeplitz")).unwrap();
        for shown in ["1.0000 s (0%)", "±2.0%", "0.800 (0%)", "WRONG", "glibc-thp 0.889", "20.0% less time"]
        {
            assert!(line.contains(shown), "{shown} in {line}");
        }
        assert!(text.contains("WRONG: fifteen/toeplitz under jemalloc-thp"), "{text}");
    }
}
