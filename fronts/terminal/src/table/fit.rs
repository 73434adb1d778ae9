//! Fits a table to the width of a page.

use super::column::Kind;
use super::fold::folded;
use super::grid::Grid;
use super::paper::Paper;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Number of spaces between two columns.
const GAP: usize = 2;
/// Smallest width to which text columns are shortened, in characters, if the table is still too wide without all
/// columns that may be left out.
const FLOOR: usize = 6;

/// The columns that are shown, and their widths.
pub(super) struct Fitted {
    /// Indices of the shown columns in the table, and their widths in characters.
    shown: Vec<(usize, usize)>,
    /// Number of spaces before the first column.
    margin: usize,
    /// Indices of the columns that are left out.
    dropped: Vec<usize>,
}

/// Chooses which columns of `grid` are shown on `paper`, and their widths.
pub(super) fn fit(grid: &Grid, paper: Paper) -> Fitted {
    let room = paper.columns.unwrap_or(usize::MAX);
    let mut shown: Vec<usize> = (0..grid.columns.len()).collect();
    let mut dropped = Vec::new();
    loop {
        let spare = |place: &usize| grid.columns[*place].spare > 0;
        // Texts become narrower than their own minimum only if no column remains that may be left out.
        let floor = if shown.iter().any(spare) { None } else { Some(FLOOR) };
        let widths = widths(grid, &shown, room, paper, floor);
        let fitted = Fitted {
            shown: shown.iter().copied().zip(widths).collect(),
            margin: grid.margin(),
            dropped: dropped.clone(),
        };
        if fitted.width() <= room {
            return fitted;
        }
        // Of columns with the same number the last one is left out first.
        let victims = shown.iter().copied().filter(spare);
        let Some(victim) = victims.max_by_key(|&place| (grid.columns[place].spare, place)) else {
            return fitted;
        };
        shown.retain(|&place| place != victim);
        dropped.push(victim);
        dropped.sort_unstable();
    }
}

/// Returns the widths of the columns `shown` in characters. If their contents do not fit into `room` characters,
/// headings are folded and texts are shortened.
fn widths(grid: &Grid, shown: &[usize], room: usize, paper: Paper, floor: Option<usize>) -> Vec<usize> {
    let total = |widths: &[usize]| {
        widths.iter().sum::<usize>() + grid.margin() + GAP * widths.len().saturating_sub(1)
    };
    let cells = |place: usize| grid.rows.iter().filter_map(move |row| row.get(place));
    let body = |place: usize| cells(place).map(|cell| paper.text(cell).width()).max().unwrap_or(0);
    let heading = |place: usize| {
        let heading = if grid.ruled { paper.text(&grid.columns[place].heading) } else { String::new() };
        let word = heading.split_whitespace().map(|word| word.width()).max().unwrap_or(0);
        (heading.width(), word)
    };
    let natural: Vec<usize> = shown.iter().map(|&place| body(place).max(heading(place).0)).collect();
    if total(&natural) <= room {
        return natural;
    }
    let mut widths: Vec<usize> = shown.iter().map(|&place| body(place).max(heading(place).1)).collect();
    // The widest text is shortened first, until all have their minimum.
    while total(&widths) > room {
        let least = |place: usize| match grid.columns[place].kind {
            Kind::Number => usize::MAX,
            Kind::Text(least) | Kind::Words(least) => floor.unwrap_or(least).max(heading(place).1),
        };
        let gives = (0..shown.len()).filter(|&at| widths[at] > least(shown[at]));
        let Some(widest) = gives.max_by_key(|&at| widths[at]) else { break };
        widths[widest] -= 1;
    }
    widths
}

impl Fitted {
    pub(super) fn width(&self) -> usize {
        let cells: usize = self.shown.iter().map(|(_, width)| width).sum();
        cells + self.margin + GAP * self.shown.len().saturating_sub(1)
    }

    /// Returns the lines of one row.
    pub(super) fn row(&self, grid: &Grid, cells: &[String], paper: Paper, heading: bool) -> Vec<String> {
        let parts: Vec<Vec<String>> = self
            .shown
            .iter()
            .map(|&(place, width)| {
                let cell = cells.get(place).map_or("", String::as_str);
                match grid.columns[place].kind {
                    _ if cell.width() <= width => vec![cell.to_owned()],
                    _ if heading => folded(cell, width),
                    Kind::Number => vec![cell.to_owned()],
                    Kind::Text(_) => vec![shortened(cell, width, paper.cut())],
                    Kind::Words(_) => folded(cell, width),
                }
            })
            .collect();
        let height = parts.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let mut line = " ".repeat(self.margin);
            for (at, (&(place, width), part)) in self.shown.iter().zip(&parts).enumerate() {
                let cell = part.get(number).map_or("", String::as_str);
                let space = " ".repeat(width.saturating_sub(cell.width()));
                line += &" ".repeat(if at == 0 { 0 } else { GAP });
                match grid.columns[place].kind {
                    Kind::Number => line += &(space + cell),
                    Kind::Text(_) | Kind::Words(_) => line += &(cell.to_owned() + &space),
                }
            }
            line
        };
        (0..height).map(line).collect()
    }

    /// Returns lines that name the columns that were left out, folded to the width of the page.
    pub(super) fn note(&self, grid: &Grid, paper: Paper) -> Vec<String> {
        if self.dropped.is_empty() {
            return Vec::new();
        }
        let name = |&place: &usize| paper.text(&grid.columns[place].heading);
        let mut names: Vec<String> = self.dropped.iter().map(name).filter(|name| !name.is_empty()).collect();
        names.dedup();
        let text = match names.len() {
            0 => "some columns are left out; a wider terminal shows them".to_owned(),
            _ => format!("left out: {}; a wider terminal shows more", names.join(", ")),
        };
        let room = paper.columns.unwrap_or(usize::MAX).saturating_sub(self.margin);
        folded(&text, room).into_iter().map(|line| " ".repeat(self.margin) + &line).collect()
    }
}

/// Returns the beginning of `text` with `cut` at its end, in `width` characters.
fn shortened(text: &str, width: usize, cut: &str) -> String {
    let room = width.saturating_sub(cut.width());
    let mut short = String::new();
    let mut used = 0;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > room {
            break;
        }
        short.push(letter);
    }
    short + cut
}
