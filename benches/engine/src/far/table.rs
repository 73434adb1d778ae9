//! Prints the outcome as a table for people, next to a published one.

use super::super::table::of_size;
use super::decisions;
use super::outcome::{FarOutcome, Slowdown};
use super::plan::FarPlan;
use super::spec::Published;
use largesse_terminal::table::{Column, Paper, Table};
use std::fmt::Write as _;

/// Space between two tables.
const GAP: &str = "    ";

/// Returns the table of one bench below its title, with the failures.
pub(super) fn show(plan: &FarPlan<'_>, outcome: &FarOutcome<'_>, paper: Paper) -> String {
    let about = if outcome.about.is_empty() { String::new() } else { format!(" ({})", outcome.about) };
    let mut text = format!("{}{}{about}\n", plan.bench.title, of_size(plan.scale));
    let noise = outcome.noise.map_or(String::new(), |noise| format!(", noise ±{:.1}%", noise * 100.0));
    match outcome.stock {
        Some(stock) => {
            let spread = stock.spread * 100.0;
            let _ = write!(text, "stock: {:.4} s ({spread:.0}%){noise}", stock.median);
        }
        None => text.push_str("stock: -"),
    }
    let mib = outcome.footprint as f64 / f64::from(1 << 20);
    let _ = writeln!(text, "; touches {mib:.1} MiB; store {}", plan.store);
    let ours = ours(outcome).lines(paper);
    let theirs = plan.spec.published.as_ref().map(|published| {
        let mut theirs = theirs(published).lines(paper);
        theirs.insert(0, published.title.clone());
        theirs
    });
    let ours: Vec<_> = ["slowdown, by local memory".to_owned()].into_iter().chain(ours).collect();
    text.push_str(&together(&ours, &theirs.unwrap_or_default(), paper.columns));
    text.push_str(&decisions::show(outcome, paper));
    for failure in &outcome.failures {
        let _ = writeln!(text, "{failure}");
    }
    paper.page(&text)
}

fn ours(outcome: &FarOutcome<'_>) -> Table {
    let mut table = Table::new(header(outcome.bench, outcome.percents));
    for (size, row) in &outcome.rows {
        table.row(std::iter::once((*size).to_owned()).chain(row.iter().map(shown)));
    }
    let each = 0..outcome.percents.len();
    let best = each.clone().map(|column| {
        outcome.best_fixed(column).map_or("-".to_owned(), |(size, ratio)| format!("{size} {}", times(ratio)))
    });
    table.row(std::iter::once("best fixed".to_owned()).chain(best));
    let auto = each.clone().map(|column| match outcome.auto_to_best(column) {
        Some(Slowdown::Measured { ratio, .. }) => format!("{ratio:.2}"),
        Some(Slowdown::Above(bound)) => format!("> {}", rounded_down(bound)),
        _ => "-".to_owned(),
    });
    table.row(std::iter::once("auto to it".to_owned()).chain(auto));
    let worst = each.map(|column| outcome.worst_to_auto(column).map_or("-".to_owned(), times));
    table.row(std::iter::once("worst to auto".to_owned()).chain(worst));
    table.apart(3);
    table
}

fn theirs(published: &Published) -> Table {
    let mut table = Table::new(header("", &published.local_percent));
    for row in &published.rows {
        let ratios = row.seconds.iter().map(|seconds| times(seconds / published.baseline_seconds));
        table.row(std::iter::once(row.page_size.clone()).chain(ratios));
    }
    table
}

/// Returns a column for the sizes and one for each share of local memory; the smallest shares, which are last, are
/// left out first.
fn header(name: &str, percents: &[u8]) -> Vec<Column> {
    let shares = percents.iter().map(|percent| Column::number(format!("{percent}%")).spare(1));
    std::iter::once(Column::text(name, 8)).chain(shares).collect()
}

/// Puts two tables next to each other if they fit, otherwise one below the other.
fn together(left: &[String], right: &[String], columns: Option<usize>) -> String {
    let width = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let (wide, room) = (width(left), columns.unwrap_or(usize::MAX));
    let mut text = String::new();
    if right.is_empty() || wide + GAP.len() + width(right) > room {
        for line in left.iter().chain(right) {
            text += line.trim_end();
            text.push('\n');
        }
        return text;
    }
    for place in 0..left.len().max(right.len()) {
        let line = |lines: &[String]| lines.get(place).cloned().unwrap_or_default();
        text += format!("{:wide$}{GAP}{}", line(left), line(right)).trim_end();
        text.push('\n');
    }
    text
}

fn shown(slowdown: &Slowdown) -> String {
    match slowdown {
        Slowdown::Measured { summary, ratio } if summary.runs == 1 => times(*ratio),
        Slowdown::Measured { summary, ratio } => {
            format!("{} ({:.0}%)", times(*ratio), summary.spread * 100.0)
        }
        Slowdown::Above(bound) => format!("> {}x", rounded_down(*bound)),
        Slowdown::Wrong => "WRONG".into(),
        Slowdown::Failed => "failed".into(),
        Slowdown::Absent => "-".into(),
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
    if bound < 10.0 {
        format!("{:.1}", (bound * 10.0).floor() / 10.0)
    } else {
        format!("{:.0}", bound.floor())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::runner::Ended;
    use super::super::outcome::tests::{samples, with_outcome};
    use super::super::plan::FarCell;
    use super::super::rounds::Samples;
    use super::*;

    fn cell(cell: FarCell<'_>) -> Samples {
        match (cell.page_size, cell.percent) {
            ("4K", 5) => Samples { ended: Some(Ended::Stopped), ..Samples::default() },
            ("16K", _) => samples(&[1.25, 1.25, 1.3], "aa"),
            ("64K", 75) => samples(&[1.0], "ab"),
            _ => samples(&[2.5, 2.5, 2.5], "aa"),
        }
    }

    fn page(columns: Option<usize>) -> Paper {
        Paper { columns, unicode: true, boxes: true }
    }

    fn words(line: &str) -> Vec<&str> {
        line.split([' ', '│']).filter(|word| !word.is_empty()).collect()
    }

    #[test]
    fn sizes_best_and_auto_are_rows() {
        let text = with_outcome(cell, |plan, outcome| show(plan, outcome, page(Some(80))));
        let line = |name: &str| words(text.lines().find(|line| line.trim_start().starts_with(name)).unwrap());
        assert_eq!(line("4K")[1..5], ["2.50x", "(0%)", "2.50x", "(0%)"]);
        assert_eq!(line("4K")[9..], [">", "30x"]);
        assert_eq!(line("64K")[1], "WRONG");
        assert_eq!(line("best fixed")[2..4], ["16K", "1.25x"]);
        assert_eq!(line("auto to it")[3], "2.00");
        assert!(text.contains("WRONG: bt, 75% local, 64K"), "{text}");
    }

    #[test]
    fn published_tables_stand_beside_or_below() {
        let at = |columns| with_outcome(cell, |plan, outcome| show(plan, outcome, page(columns)));
        let (beside, below) = (at(Some(150)), at(Some(100)));
        let first = |text: &str| words(text.lines().find(|line| line.contains("1M ")).unwrap()).len();
        assert!(first(&beside) > first(&below), "{beside}\n{below}");
        for text in [&beside, &below] {
            assert!(text.contains("FIT2011") && text.contains("1809x") && text.contains("1.00x"), "{text}");
        }
        for (text, most) in [(&beside, 150), (&below, 100)] {
            assert!(text.lines().all(|line| line.chars().count() <= most), "{text}");
        }
    }

    #[test]
    fn bounds_are_rounded_down() {
        assert_eq!([1.024, 9.996, 99.96, 1811.4].map(times), ["1.02x", "10.0x", "100x", "1811x"]);
        assert_eq!([39.99, 1.29].map(rounded_down), ["39", "1.2"]);
    }
}
