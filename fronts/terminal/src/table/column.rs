//! Describes a column of a table: its heading, and how its cells may be changed to fit the page.

/// How the cells of a column are aligned, and how they may be changed to fit the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Cells are aligned to the right, and neither shortened nor folded.
    Number,
    /// Cells are aligned to the left. Where room is lacking they are shortened with `…`, to this number of characters
    /// at least.
    Text(usize),
    /// Cells are aligned to the left. Where room is lacking they are folded at spaces, to lines of this number of
    /// characters at least.
    Words(usize),
}

/// One column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    pub(super) heading: String,
    pub(super) kind: Kind,
    /// Rank in which columns are left out where room is lacking: those with a larger number first, those with 0 never.
    pub(super) spare: u8,
}

impl Column {
    /// Makes a column of numbers or other short words, aligned to the right.
    pub fn number(heading: impl Into<String>) -> Column {
        Column { heading: heading.into(), kind: Kind::Number, spare: 0 }
    }

    /// Makes a column of names, aligned to the left, which are shortened where room is lacking, but have at least
    /// `least` characters.
    pub fn text(heading: impl Into<String>, least: usize) -> Column {
        Column { heading: heading.into(), kind: Kind::Text(least), spare: 0 }
    }

    /// Makes a column of sentences, aligned to the left, which are folded at spaces where room is lacking, to lines of
    /// at least `least` characters.
    pub fn words(heading: impl Into<String>, least: usize) -> Column {
        Column { heading: heading.into(), kind: Kind::Words(least), spare: 0 }
    }

    /// Allows the column to be left out: columns with the largest `order` first, and of equals the last.
    pub fn spare(self, order: u8) -> Column {
        Column { spare: order, ..self }
    }
}
