//! Draws a time line as a small chart of characters, for a terminal.

use largesse_plot::Moment;
use largesse_terminal::size;
use largesse_terminal::table::Paper;
use std::fmt::Write as _;

/// Most columns of the curves.
const MOST_COLUMNS: usize = 60;
/// Columns to the left of the curves.
const NAMES: usize = 14;
/// Columns that the notes to the right of the curves take at most.
const NOTES: usize = 22;

/// Heights of a curve, from the lowest above zero to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['.', ':', '-', '=', '+', '*', '#', '@'];

/// Returns the chart of `moments`, which are in order of time, below `title`.
pub(crate) fn of(title: &str, moments: &[Moment], paper: Paper) -> String {
    let room = paper.columns.map_or(MOST_COLUMNS, |columns| columns.saturating_sub(NAMES + NOTES));
    let columns = room.clamp(10, MOST_COLUMNS);
    let last = moments.last().copied().unwrap_or_default();
    let most = |field: Field| moments.iter().map(field).max().unwrap_or(0);
    // Both are amounts of the same memory, so that their heights can be compared.
    let amounts = most(|it| it.resident).max(most(|it| it.stored));
    let rows: [(&str, Vec<f64>, String); 5] = [
        ("resident", levels(moments, columns, |it| it.resident, amounts), at_most(most(|it| it.resident))),
        ("in the store", levels(moments, columns, |it| it.stored, amounts), at_most(most(|it| it.stored))),
        ("read from it", increments(moments, columns, |it| it.swapped_in), in_all(size(last.swapped_in))),
        ("written to it", increments(moments, columns, |it| it.written), in_all(size(last.written))),
        ("faults", increments(moments, columns, |it| it.faults), in_all(last.faults.to_string())),
    ];
    let mut text = format!("{title}\n");
    for (name, heights, note) in rows {
        let curve: String = heights.into_iter().map(|height| character(height, paper)).collect();
        let _ = writeln!(text, "{name:NAMES$}{curve}  {note}");
    }
    let end = format!("{:.1} s", last.seconds);
    let _ = writeln!(text, "{:NAMES$}0{end:>width$}", "", width = columns - 1);
    text
}

type Field = fn(&Moment) -> u64;

fn at_most(bytes: u64) -> String {
    format!("at most {}", size(bytes))
}

fn in_all(amount: String) -> String {
    amount + " in all"
}

/// Returns the highest value in each of `columns` equal spans of time, as a share of `scale`.
fn levels(moments: &[Moment], columns: usize, field: Field, scale: u64) -> Vec<f64> {
    let highest = |from: f64, to: f64| {
        let inside = moments.iter().filter(|it| it.seconds >= from && it.seconds <= to);
        inside.map(|it| field(it) as f64).fold(at(moments, to, field), f64::max)
    };
    shares(spans(moments, columns).map(|(from, to)| highest(from, to)).collect(), scale as f64)
}

/// Returns the increase of a total in each of `columns` equal spans of time, as a share of the greatest one.
fn increments(moments: &[Moment], columns: usize, field: Field) -> Vec<f64> {
    let grown = spans(moments, columns).map(|(from, to)| at(moments, to, field) - at(moments, from, field));
    let grown: Vec<f64> = grown.collect();
    let most = grown.iter().copied().fold(0.0, f64::max);
    shares(grown, most)
}

fn shares(values: Vec<f64>, scale: f64) -> Vec<f64> {
    values.into_iter().map(|value| if scale > 0.0 { value / scale } else { 0.0 }).collect()
}

/// Returns the beginnings and ends of equal spans of the time that the moments cover.
fn spans(moments: &[Moment], columns: usize) -> impl Iterator<Item = (f64, f64)> {
    let end = moments.last().map_or(0.0, |it| it.seconds);
    let bound = move |column: usize| end * column as f64 / columns as f64;
    (0..columns).map(move |column| (bound(column), bound(column + 1)))
}

/// Returns a value at any time, on a straight line between the moments before and after it.
fn at(moments: &[Moment], seconds: f64, field: Field) -> f64 {
    let next = moments.partition_point(|it| it.seconds < seconds);
    let value = |place: usize| moments.get(place).map(|it| (it.seconds, field(it) as f64));
    match (next.checked_sub(1).and_then(value), value(next)) {
        (Some((t0, v0)), Some((t1, v1))) if t1 > t0 => v0 + (v1 - v0) * (seconds - t0) / (t1 - t0),
        (_, Some((_, only))) | (Some((_, only)), None) => only,
        (None, None) => 0.0,
    }
}

/// Returns the character for a height between 0 and 1. Any amount above 0 is visible.
fn character(height: f64, paper: Paper) -> char {
    let characters = if paper.unicode { BLOCKS } else { ASCII };
    let step = (1_u8..=8).find(|step| height <= f64::from(*step) / 8.0).unwrap_or(8);
    if height > 0.0 { characters[usize::from(step) - 1] } else { ' ' }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(seconds: f64, resident: u64, faults: u64) -> Moment {
        Moment { seconds, resident, faults, ..Moment::default() }
    }

    const PAPER: Paper = Paper { columns: Some(NAMES + NOTES + 10), unicode: true, boxes: true };

    #[test]
    fn curves_follow_levels_and_increments() {
        let moments = [moment(0.0, 0, 0), moment(5.0, 1 << 20, 0), moment(10.0, 1 << 20, 500)];
        let chart = of("./solver", &moments, PAPER);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[0], "./solver");
        assert_eq!(lines[1], "resident      ▂▄▅▇██████  at most 1 MiB");
        assert_eq!(lines[5], "faults             █████  500 in all");
        assert_eq!(lines[6], "              0   10.0 s");
    }

    #[test]
    fn short_peaks_are_drawn() {
        let moments = [
            moment(0.0, 1, 0),
            moment(4.9, 1, 0),
            moment(5.0, 800, 0),
            moment(5.1, 1, 0),
            moment(10.0, 1, 0),
        ];
        let heights = levels(&moments, 5, |it| it.resident, 800);
        assert!((heights[2] - 1.0).abs() < 1e-9, "{heights:?}");
    }

    #[test]
    fn plain_paper_has_ascii() {
        let chart = of("", &[moment(0.0, 0, 0), moment(1.0, 4096, 3)], Paper::plain(Some(20)));
        assert!(chart.is_ascii() && chart.contains('@'), "{chart}");
    }

    #[test]
    fn absurd_moments_do_not_panic() {
        let odd = moment(f64::NAN, u64::MAX, u64::MAX);
        for moments in
            [vec![], vec![odd], vec![odd, moment(-1.0, 0, 0), odd], vec![moment(f64::INFINITY, 1, 1); 2]]
        {
            assert_eq!(of("", &moments, PAPER).lines().count(), 7, "{moments:?}");
        }
    }
}
