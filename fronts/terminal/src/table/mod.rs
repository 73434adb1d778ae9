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

mod fit;
mod paper;

pub use paper::{Paper, terminal_columns};

use unicode_width::UnicodeWidthStr as _;

/// How the cells of a column may be changed to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Cells are aligned to the right, and are neither shortened nor folded.
    Number,
    /// Cells are aligned to the left. If the table is too wide, they are shortened with `…`, but not below this number
    /// of characters.
    Text(usize),
    /// Cells are aligned to the left. If the table is too wide, they are folded at spaces into several lines, but not
    /// into lines narrower than this number of characters.
    Words(usize),
}

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    heading: String,
    kind: Kind,
    /// Rank for leaving the column out of a table that is too wide: the largest goes first, and 0 never goes.
    spare: u8,
}

impl Column {
    /// Makes a column of numbers or other short words, aligned to the right.
    pub fn number(heading: impl Into<String>) -> Column {
        Column { heading: heading.into(), kind: Kind::Number, spare: 0 }
    }

    /// Makes a column of names, aligned to the left, which may be shortened down to `least` characters.
    pub fn text(heading: impl Into<String>, least: usize) -> Column {
        Column { heading: heading.into(), kind: Kind::Text(least), spare: 0 }
    }

    /// Makes a column of sentences, aligned to the left, which may be folded at spaces into lines of at least `least`
    /// characters.
    pub fn words(heading: impl Into<String>, least: usize) -> Column {
        Column { heading: heading.into(), kind: Kind::Words(least), spare: 0 }
    }

    /// Allows the column to be left out: columns with the largest `order` first, and of equals the last.
    pub fn spare(self, order: u8) -> Column {
        Column { spare: order, ..self }
    }
}

/// A table: rows of cells below a heading.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    /// Number of rows at the end that stand below a line.
    apart: usize,
    /// Whether lines are drawn around the table and below the heading.
    ruled: bool,
}

impl Table {
    /// Makes a table with headings and lines around it.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), rows: Vec::new(), apart: 0, ruled: true }
    }

    /// Makes a table without headings and lines.
    pub fn bare(columns: impl IntoIterator<Item = Column>) -> Table {
        Table { ruled: false, ..Table::new(columns) }
    }

    /// Adds a row, with a cell for each column.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns the number of spaces before the first column.
    fn margin(&self) -> usize {
        if self.ruled { 1 } else { 2 }
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
        let fitted = fit::fit(self, paper);
        let width = fitted.width();
        let mut lines = Vec::new();
        if self.ruled {
            lines.push(paper.rule(width));
            let headings: Vec<String> =
                self.columns.iter().map(|column| paper.text(&column.heading)).collect();
            lines.extend(fitted.row(self, &headings, paper, true));
            lines.push(paper.rule(width));
        }
        for (place, row) in self.rows.iter().enumerate() {
            if self.apart > 0 && place + self.apart == self.rows.len() {
                lines.push(paper.rule(width));
            }
            let cells: Vec<String> = row.iter().map(|cell| paper.text(cell)).collect();
            lines.extend(fitted.row(self, &cells, paper, false));
        }
        if self.ruled {
            lines.push(paper.rule(width));
        }
        lines.extend(fitted.note(self, paper));
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

/// Folds `text` at spaces into lines of at most `columns` characters. A longer word is not broken.
pub fn folded(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests;
