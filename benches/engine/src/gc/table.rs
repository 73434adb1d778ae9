//! Prints the outcome as a table for people.

use super::super::stats::Summary;
use super::outcome::{Cell, GcOutcome, SystemRow};
use largesse_terminal::say::counted;
use largesse_terminal::table::{Column, Paper, Table};
use std::fmt::Write as _;

pub(super) const LEGEND: &str = "\
Every thread does the same work. `1 thread`: the time of one repetition (largest less smallest, over the median).\n\
`p threads`: the gain, p times the time of one thread over the time of p, the median of all rounds. `gc`: the share of the\n\
time in which collections stopped threads.";

/// Returns the table of one program, with the failures.
pub(super) fn show(outcome: &GcOutcome<'_>, reference: &str, paper: Paper) -> String {
    let beside = outcome.rows.iter().any(|row| outcome.to_reference(row, reference).is_some());
    let mut columns = vec![Column::text(outcome.program.name.clone(), 10), Column::number("1 thread")];
    if beside {
        columns.push(Column::number(format!("to {reference}")));
    }
    columns.push(Column::number("gc"));
    let more = outcome.rows.first().map_or(&[][..], |row| &row.cells[1..]);
    let pair = |threads: u32| [Column::number(counted(threads, "thread")), Column::number("gc")];
    columns.extend(more.iter().flat_map(|(threads, _)| pair(*threads)).map(|column| column.spare(1)));
    let mut table = Table::new(columns);
    for row in &outcome.rows {
        let ratio = outcome.to_reference(row, reference);
        let ratio = beside.then(|| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
        table.row(cells(row, ratio));
    }
    let mut text = format!("{}\n{}\n", outcome.program.title, table.show(paper));
    if outcome.program.pauses {
        for row in &outcome.rows {
            for ((threads, _), pauses) in row.cells.iter().zip(&row.pauses) {
                text += &pauses.show(&format!("{}, {}", row.system, counted(*threads, "thread")));
            }
        }
    }
    for failure in &outcome.failures {
        let _ = writeln!(text, "{failure}");
    }
    text
}

fn cells(row: &SystemRow<'_>, ratio: Option<String>) -> Vec<String> {
    let mut cells = vec![row.system.to_owned()];
    for (place, (_, cell)) in row.cells.iter().enumerate() {
        let (first, share) = match cell {
            Cell::Measured { each, gc_share, .. } if place == 0 => (time(*each), *gc_share),
            Cell::Measured { gain, gc_share, .. } => {
                (spread(format!("{:.2}", gain.median), *gain), *gc_share)
            }
            Cell::Stopped => ("stopped".into(), None),
            Cell::Wrong => ("WRONG".into(), None),
            Cell::Failed => ("failed".into(), None),
        };
        cells.push(first);
        if place == 0 {
            cells.extend(ratio.clone());
        }
        cells.push(share.map_or("-".into(), |share| format!("{:.0}%", share.median * 100.0)));
    }
    cells
}

/// Formats the seconds of one repetition in the unit that suits.
fn time(each: Summary) -> String {
    let (unit, name) = match each.median {
        ..1e-6 => (1e-9, "ns"),
        ..1e-3 => (1e-6, "us"),
        ..1.0 => (1e-3, "ms"),
        _ => (1.0, "s"),
    };
    spread(format!("{:.2} {name}", each.median / unit), each)
}

fn spread(text: String, summary: Summary) -> String {
    if summary.runs == 1 { text } else { format!("{text} ({:.0}%)", summary.spread * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{Rows, with_outcome};
    use super::super::rounds::Failure;
    use super::*;

    #[test]
    fn times_gains_and_shares_are_shown() {
        let rows: &Rows<'_> = &[
            ("safepoint", &[Ok(&[(0.01, 0.001), (0.01, 0.001)]), Ok(&[(0.01, 0.002), (0.0125, 0.0025)])]),
            ("euslisp", &[Ok(&[(0.04, 0.02)]), Err(Failure::Stopped)]),
            ("go", &[Err(Failure::Wrong("1 is not 2".into())), Ok(&[])]),
        ];
        let text = with_outcome(rows, |definition, outcome| {
            show(outcome, &definition.reference, Paper::plain(None))
        });
        let line = |name: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>()
        };
        assert_eq!(
            line("copy-seq"),
            ["copy-seq", "1", "thread", "to", "euslisp", "gc", "2", "threads", "gc"]
        );
        assert_eq!(
            line("safepoint")[1..],
            ["10.00", "us", "(0%)", "0.25", "10%", "1.80", "(22%)", "20%"],
            "{text}"
        );
        assert_eq!(line("euslisp")[1..], ["40.00", "us", "-", "50%", "stopped", "-"]);
        assert_eq!(line("go")[1..], ["WRONG", "-", "-", "WRONG", "-"]);
        assert!(text.contains("WRONG: copy-seq, go, threads: 1: 1 is not 2"), "{text}");
    }

    #[test]
    fn without_the_reference_there_are_no_ratios() {
        let rows: &Rows<'_> = &[("safepoint", &[Ok(&[(2e-7, 0.0)])])];
        let text = with_outcome(rows, |definition, outcome| {
            show(outcome, &definition.reference, Paper::plain(None))
        });
        assert!(text.contains("0.20 ns") && !text.contains("to euslisp"), "{text}");
    }
}
