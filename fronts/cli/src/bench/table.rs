//! The outcome as a table for people.

use super::outcome::{Cell, Line, Outcome, Unit};
use super::settings::Role;
use crate::say::counted;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent};
use std::fmt::Write as _;

/// The table of one bench, with what it is and what went wrong; without a width it is as wide as it needs.
pub(super) fn show(outcome: &Outcome<'_>, scale: f64, columns: Option<u16>) -> String {
    let bench = outcome.bench;
    let peers = outcome.contestants.iter().any(|one| one.setting.role == Role::Peer);
    let mut table = empty(columns);
    let mut header = vec![bench.name.clone()];
    header.extend(
        outcome.contestants.iter().map(|one| if one.again { "noise".to_owned() } else { one.name() }),
    );
    if peers {
        header.push("to best peer".into());
    }
    header.push("reading".into());
    let last = header.len() - 1;
    table.set_header(header);
    for line in &outcome.lines {
        table.add_row(row(outcome, line, peers));
    }
    for place in 1..last {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let size = of_size(scale);
    let about = if outcome.about.is_empty() { String::new() } else { format!(" ({})", outcome.about) };
    let mut text = format!("{}{size}{about}\n{table}\n", bench.title);
    let unchecked = bench.tests.iter().filter(|test| bench.expected(&test.name, scale).is_none()).count();
    if unchecked > 0 {
        let _ = writeln!(
            text,
            "The definition has no expected answer for {} at this size: only that all agree to the bit was checked.",
            counted(unchecked as u64, "test")
        );
    }
    for trouble in &outcome.troubles {
        let _ = writeln!(text, "{trouble}");
    }
    text
}

/// How large the data are, when not as large as they could be.
pub(super) fn of_size(scale: f64) -> String {
    if (scale - 1.0).abs() < 1e-9 { String::new() } else { format!(", at {scale} of its size") }
}

/// A table without anything in it, no wider than `columns`.
pub(super) fn empty(columns: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY).remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    table.remove_style(TableComponent::LeftBorderIntersections);
    table.remove_style(TableComponent::RightBorderIntersections);
    if let Some(columns) = columns {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    }
    table
}

fn row(outcome: &Outcome<'_>, line: &Line, peers: bool) -> Vec<String> {
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
    fn the_table_shows_ratios_noise_and_the_best_peer() {
        let samples: &[(&[f64], &str)] =
            &[(&[1.0; 3], "a"), (&[1.02; 3], "a"), (&[0.8; 3], "a"), (&[0.9; 3], "a"), (&[0.5; 3], "b")];
        let text = with_outcome(samples, |outcome| show(outcome, 1.0, None));
        let line = text.lines().find(|line| line.contains("toeplitz")).unwrap();
        for shown in ["1.0000 s (0%)", "±2.0%", "0.800 (0%)", "WRONG", "glibc-thp 0.889", "20.0% less time"]
        {
            assert!(line.contains(shown), "{shown} in {line}");
        }
        assert!(text.contains("WRONG: fifteen/toeplitz under jemalloc-thp"), "{text}");
    }
}
