//! Holds the content of a table, before it is fitted to a page.

use super::column::Column;

/// Rows of cells below a heading.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether lines are drawn around the table and below the heading.
    pub(super) ruled: bool,
}

impl Grid {
    /// Returns the number of spaces before the first column.
    pub(super) fn margin(&self) -> usize {
        if self.ruled { 1 } else { 2 }
    }
}
