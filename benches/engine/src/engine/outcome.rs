//! The results of one bench, as a table for people and as JSON.

use super::Summary;
use largesse_terminal::table::{Paper, Table};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Space between two tables.
const GAP: &str = "    ";

/// The result of a contestant on one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Every answer was right. The ratio is to the baseline's median, if it has one.
    Measured(Summary, Option<f64>),
    /// The run was stopped: its ratio to the baseline is above this number.
    Above(f64),
    /// The run was stopped, and has no bound.
    Stopped,
    /// The run needed more memory than its control group may have.
    OutOfMemory,
    Wrong,
    Failed,
    Absent,
}

impl Cell {
    /// Returns the cell of `values`, compared with a baseline.
    pub(crate) fn of(values: &[f64], baseline: Option<Summary>) -> Cell {
        let ratio = |it: Summary| Some(it.median / baseline.filter(|first| first.median > 0.0)?.median);
        Summary::of(values).map_or(Cell::Absent, |summary| Cell::Measured(summary, ratio(summary)))
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        if let Cell::Measured(summary, _) = self { Some(*summary) } else { None }
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        if let Cell::Measured(_, ratio) = self { *ratio } else { None }
    }

    /// Returns the text of a cell without a measurement.
    pub(crate) fn word(&self) -> String {
        let word = match self {
            Cell::Stopped => "stopped",
            Cell::OutOfMemory => "OOM",
            Cell::Wrong => "WRONG",
            Cell::Failed => "failed",
            Cell::Measured(..) | Cell::Above(_) | Cell::Absent => "-",
        };
        word.into()
    }

    /// Returns the JSON object `keys` with the result.
    pub(crate) fn object(&self, keys: Value) -> Value {
        let (answer, more) = match self {
            Cell::Measured(summary, None) => ("right", json!(summary)),
            Cell::Measured(summary, ratio) => ("right", merged(json!({ "ratio": ratio }), &json!(summary))),
            Cell::Above(bound) => ("stopped", json!({ "above": bound })),
            Cell::Stopped => ("stopped", Value::Null),
            Cell::OutOfMemory => ("out of memory", Value::Null),
            Cell::Wrong => ("wrong", Value::Null),
            Cell::Failed => ("failed", Value::Null),
            Cell::Absent => ("none", Value::Null),
        };
        let mut object = merged(keys, &more);
        object["answer"] = answer.into();
        object
    }
}

/// The results of one bench: a table with lines above and below it, further tables with their titles, JSON objects,
/// and messages on wrong answers and contestants that could not run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) bench: String,
    pub(crate) title: String,
    pub(crate) table: Table,
    /// A table to show next to it where there is room.
    pub(crate) published: Option<(String, Table)>,
    pub(crate) below: String,
    pub(crate) last: Vec<(String, Table)>,
    pub(crate) objects: Vec<Value>,
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(bench: &str, title: String, table: Table) -> Outcome {
        let (published, last, objects, failures) = (None, Vec::new(), Vec::new(), Vec::new());
        let (bench, below) = (bench.to_owned(), "\n".to_owned());
        Outcome { bench, title, table, published, below, last, objects, failures }
    }

    /// Returns the JSON objects, and one for each failure.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let trouble = |text| json!({ "kind": "trouble", "bench": self.bench, "text": text });
        self.objects.iter().cloned().chain(self.failures.iter().map(trouble)).collect()
    }

    /// Returns the tables below their title, with the failures.
    pub(crate) fn text(&self, paper: Paper) -> String {
        let mut lines: Vec<String> = self.title.lines().map(str::to_owned).collect();
        // The published table begins next to the last line of the title.
        let first = lines.len().saturating_sub(1);
        lines.extend(self.table.lines(paper));
        let published = |(title, table): &(String, Table)| [vec![title.clone()], table.lines(paper)].concat();
        let mut other = self.published.as_ref().map(published).unwrap_or_default();
        let width = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let wide = width(&lines[first..]);
        if paper.columns.is_some_and(|columns| wide + GAP.len() + width(&other) > columns) {
            lines.append(&mut other);
        }
        lines.resize(lines.len().max(first + other.len()), String::new());
        for (line, other) in lines[first..].iter_mut().zip(&other) {
            *line = format!("{line:wide$}{GAP}{other}");
        }
        let mut text: String = lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect();
        text += &self.below;
        for (title, table) in &self.last {
            let _ = write!(text, "{title}\n{}", table.show(paper));
        }
        for failure in &self.failures {
            let _ = writeln!(text, "{failure}");
        }
        text
    }
}

/// Returns the keys of both objects.
pub(crate) fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.clone());
    }
    one
}
