//! Prints tables for people. Only this module decides how wide a column is.
//!
//! # Picture
//! ```text
//!   columns, rows ─► fit to the page: 1. headings on several lines   2. texts shortened with `…`, words folded
//!                                     3. columns left out, and named ─► lines
//! ```
//! # Knows / does not know
//! Knows widths. Does not know the content of the cells.
//! # Invariants
//! 1. A cell of a number column is never folded and never shortened, whatever the width.
//! 2. Columns that are left out are named below the table.

mod column;
mod fit;
mod fold;
mod grid;
mod paper;

pub use column::Column;
pub use fold::folded;
pub use paper::{Paper, terminal_columns};

use grid::Grid;
use unicode_width::UnicodeWidthStr as _;

/// A table: rows of cells below a heading.
#[derive(Debug)]
pub struct Table {
    grid: Grid,
    /// Number of rows at the end that a line separates from the others.
    apart: usize,
}

impl Table {
    /// Makes a table with headings and lines around it.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table::of(columns.into_iter().collect(), true)
    }

    /// Makes a table without headings and lines.
    pub fn bare(columns: impl IntoIterator<Item = Column>) -> Table {
        Table::of(columns.into_iter().collect(), false)
    }

    fn of(columns: Vec<Column>, ruled: bool) -> Table {
        Table { grid: Grid { columns, rows: Vec::new(), ruled }, apart: 0 }
    }

    /// Adds a row, with a cell for each column.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.grid.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Draws a line above the last `rows` rows, which sum up the others.
    pub fn apart(&mut self, rows: usize) {
        self.apart = rows;
    }

    /// Returns the text of the table. No line is wider than the page unless its numbers are.
    pub fn show(&self, paper: Paper) -> String {
        self.lines(paper).iter().map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    /// Returns the lines of the table without newlines. All are equally wide, except the note on columns left out.
    pub fn lines(&self, paper: Paper) -> Vec<String> {
        let Table { grid, apart } = self;
        let fitted = fit::fit(grid, paper);
        let width = fitted.width();
        let mut lines = Vec::new();
        if grid.ruled {
            lines.push(paper.rule(width));
            let headings: Vec<String> =
                grid.columns.iter().map(|column| paper.text(&column.heading)).collect();
            lines.extend(fitted.row(grid, &headings, paper, true));
            lines.push(paper.rule(width));
        }
        for (place, row) in grid.rows.iter().enumerate() {
            if *apart > 0 && place + apart == grid.rows.len() {
                lines.push(paper.rule(width));
            }
            let cells: Vec<String> = row.iter().map(|cell| paper.text(cell)).collect();
            lines.extend(fitted.row(grid, &cells, paper, false));
        }
        if grid.ruled {
            lines.push(paper.rule(width));
        }
        lines.extend(fitted.note(grid, paper));
        lines
    }
}

/// Returns lines with pairs of a name and a value: two pairs on a line if they fit, otherwise one.
pub fn facts(pairs: &[(&str, String)], paper: Paper) -> String {
    let columns = || [Column::text("", 8), Column::number("")];
    let mut two = Table::bare(columns().into_iter().chain(columns()));
    for line in pairs.chunks(2) {
        let cells = line.iter().enumerate().flat_map(|(place, (name, value))| {
            [format!("{}{name}", if place == 0 { "" } else { "  " }), value.clone()]
        });
        two.row(cells);
    }
    let wide = two.lines(Paper { columns: None, ..paper });
    let most = wide.iter().map(|line| line.width()).max().unwrap_or(0);
    if paper.columns.is_none_or(|columns| most <= columns) {
        return two.show(paper);
    }
    let mut one = Table::bare(columns());
    pairs.iter().for_each(|(name, value)| one.row([(*name).to_owned(), value.clone()]));
    one.show(paper)
}

#[cfg(test)]
mod tests;
