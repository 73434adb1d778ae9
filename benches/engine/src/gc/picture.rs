//! Draws the outcomes: for each system with more than one program, gains and shares of collections by threads.

use super::outcome::{Cell, GcOutcome, SystemRow};
use super::rounds::processors;
use largesse_plot::curves::{Axes, Panel, Series, svg};

/// Returns the height of a curve from a cell; `None` leaves the point out.
type Height = fn(&Cell) -> Option<f64>;

/// Draws figure 4 of Matsui and Sekiguchi (1995) for each of `systems`, given as name and title.
pub(super) fn draw(
    title: &str,
    systems: &[(&str, &str)],
    outcomes: &[GcOutcome<'_>],
) -> Result<String, String> {
    let panels: Vec<_> = systems.iter().flat_map(|system| both(system, outcomes)).collect();
    svg(title, &panels, &[(f64::from(processors()), "processors")])
}

/// Returns two panels of one system, gains and shares; none if it has only one program where others have many.
fn both((name, title): &(&str, &str), outcomes: &[GcOutcome<'_>]) -> Vec<Panel> {
    let rows: Vec<_> = outcomes.iter().filter_map(|it| Some((&*it.program.name, row(it, name)?))).collect();
    if rows.is_empty() || rows.len() == 1 && outcomes.len() > 1 {
        return Vec::new();
    }
    let series = |height: Height| -> Vec<Series> {
        rows.iter().map(|(program, row)| curve(program, row, height)).collect()
    };
    let gains = series(|cell| match cell {
        Cell::Measured { gain, .. } => Some(gain.median),
        _ => None,
    });
    let shares = series(|cell| match cell {
        Cell::Measured { gc_share, .. } => gc_share.map(|share| share.median * 100.0),
        _ => None,
    });
    let most = f64::from(processors());
    let threads = rows[0].1.cells.iter().map(|(threads, _)| f64::from(*threads));
    let ideal = threads.map(|threads| (threads, threads.min(most))).collect();
    vec![
        Panel { title: (*title).to_owned(), axes: Axes::Gain, limit: ideal, series: gains },
        Panel { title: format!("{name}: share of GC"), axes: Axes::Share, limit: Vec::new(), series: shares },
    ]
}

fn row<'a>(outcome: &'a GcOutcome<'a>, name: &str) -> Option<&'a SystemRow<'a>> {
    outcome.rows.iter().find(|row| row.system == name)
}

fn curve(program: &str, row: &SystemRow<'_>, height: Height) -> Series {
    let points = row.cells.iter().filter_map(|(threads, cell)| Some((f64::from(*threads), height(cell)?)));
    Series { name: program.to_owned(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{Rows, with_outcome};
    use super::super::rounds::Failure;
    use super::*;

    /// Counts the points of all curves, and the panels of shares.
    fn points(rows: &Rows<'_>) -> (usize, usize) {
        let drawn = with_outcome(rows, |_, outcome| {
            draw("", &[("mutex", "one lock"), ("go", "Go")], std::slice::from_ref(outcome)).unwrap()
        });
        (drawn.matches("<circle").count(), drawn.matches("share of GC").count())
    }

    #[test]
    fn measured_cells_are_points_of_two_curves() {
        let good = || Ok(&[(1.0, 0.5)][..]);
        assert_eq!(points(&[("mutex", &[good(), good()])]), (4, 1));
        assert_eq!(points(&[("mutex", &[good(), Err(Failure::Stopped)]), ("go", &[good(), good()])]), (6, 2));
    }
}
