//! Holds the results of one bench, and shows them as a table for people and as JSON.

use super::{Result, Summary};
use largesse_terminal::table::{Paper, Table};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The result of one contestant in one line of the table, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub(crate) enum Cell {
    /// Every answer was right. The ratio is that of the contestant's median to the baseline's, if there is a baseline.
    #[serde(rename = "right")]
    Measured {
        #[serde(flatten)]
        summary: Summary,
        #[serde(skip_serializing_if = "Option::is_none")]
        ratio: Option<f64>,
    },
    /// The run was stopped. The ratio of its time to the baseline's would be above this number.
    Stopped {
        #[serde(skip_serializing_if = "Option::is_none")]
        above: Option<f64>,
    },
    /// The run needed more memory than its control group may have.
    #[serde(rename = "out of memory")]
    OutOfMemory,
    Wrong,
    Failed,
    #[serde(rename = "none")]
    Absent,
}

/// The values of a contestant, one for each run, or the cell to show if it has none.
pub(crate) type Values = Result<Vec<f64>, Cell>;

impl Cell {
    /// Returns the cell for the measured `values`, with their ratio to the baseline, or the cell to show instead.
    pub(crate) fn of(values: &Values, baseline: Option<Summary>) -> Cell {
        let summary = match values {
            Ok(values) => Summary::of(values),
            Err(cell) => return *cell,
        };
        let Some(summary) = summary else { return Cell::Absent };
        let ratio = baseline.filter(|it| it.median > 0.0).map(|it| summary.median / it.median);
        Cell::Measured { summary, ratio }
    }

    pub(crate) fn summary(&self) -> Option<Summary> {
        if let Cell::Measured { summary, .. } = self { Some(*summary) } else { None }
    }

    pub(crate) fn ratio(&self) -> Option<f64> {
        if let Cell::Measured { ratio, .. } = self { *ratio } else { None }
    }

    /// Returns the ratio to the baseline, or its lower bound if the run was stopped.
    pub(crate) fn reached(&self) -> Option<f64> {
        if let Cell::Stopped { above } = self { *above } else { self.ratio() }
    }

    /// Returns the word that is shown in a cell without a measurement.
    pub(crate) fn word(&self) -> String {
        let word = match self {
            Cell::Stopped { .. } => "stopped",
            Cell::OutOfMemory => "OOM",
            Cell::Wrong => "WRONG",
            Cell::Failed => "failed",
            Cell::Measured { .. } | Cell::Absent => "-",
        };
        word.into()
    }
}

/// The results of one bench: a table with lines above and below it, further tables with their titles, JSON objects,
/// and messages on wrong answers and contestants that could not run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) bench: String,
    pub(crate) title: String,
    pub(crate) table: Table,
    pub(crate) below: String,
    pub(crate) last: Vec<(String, Table)>,
    pub(crate) objects: Vec<Value>,
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    pub(crate) fn new(bench: &str, title: String, table: Table) -> Outcome {
        let (last, objects, failures) = (Vec::new(), Vec::new(), Vec::new());
        Outcome { bench: bench.to_owned(), title, table, below: "\n".into(), last, objects, failures }
    }

    /// Returns the JSON objects of the bench, and one more for each failure.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let trouble = |text| json!({ "kind": "trouble", "bench": self.bench, "text": text });
        self.objects.iter().cloned().chain(self.failures.iter().map(trouble)).collect()
    }

    /// Returns the text of all tables below their titles, with the failures.
    pub(crate) fn text(&self, paper: Paper) -> String {
        let mut text = format!("{}\n{}{}", self.title, self.table.show(paper), self.below);
        for (title, table) in &self.last {
            let _ = write!(text, "{title}\n{}", table.show(paper));
        }
        for failure in &self.failures {
            let _ = writeln!(text, "{failure}");
        }
        text
    }
}

/// Returns an object with the keys of both objects.
pub(crate) fn merged(mut one: Value, other: &Value) -> Value {
    if let (Some(one), Some(other)) = (one.as_object_mut(), other.as_object()) {
        one.extend(other.clone());
    }
    one
}
