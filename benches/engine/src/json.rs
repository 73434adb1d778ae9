//! Prints the comparison as JSON, one object a line: `machine`, then every `run` as it ends, then a `line` for each
//! test and contestant, and each `absent` setting or `trouble`.

use super::machine::MachineFacts;
use super::outcome::{Cell, Outcome, Unit};
use super::runner::{Contestant, Run};
use serde_json::{Value, json};

pub(super) fn machine(machine: &MachineFacts, scale: f64) -> Value {
    json!({ "kind": "machine", "machine": machine, "scale": scale })
}

/// Returns an object for each failure in a bench.
pub(super) fn failures(bench: &str, texts: &[String]) -> impl Iterator<Item = Value> {
    texts.iter().map(move |text| json!({ "kind": "trouble", "bench": bench, "text": text }))
}

/// Returns a raw sample: all that the program reported.
pub(super) fn run(bench: &str, contestant: &Contestant<'_>, round: usize, run: &Run) -> Value {
    json!({ "kind": "run", "bench": bench, "setting": contestant.name(), "round": round, "tests": run.tests, "peak": run.peak })
}

/// Returns the object for a setting or a bench that this machine cannot run.
pub(super) fn absent(bench: &str, setting: Option<&str>, why: &str) -> Value {
    json!({ "kind": "absent", "bench": bench, "setting": setting, "why": why })
}

pub(super) fn outcome(outcome: &Outcome<'_>) -> Vec<Value> {
    let mut values = Vec::new();
    for line in &outcome.lines {
        let best = line.best_peer(&outcome.contestants);
        for (one, cell) in outcome.contestants.iter().zip(&line.cells) {
            let unit = if line.unit == Unit::Seconds { "s" } else { "KiB" };
            let mut value = json!({
                "kind": "line", "bench": outcome.bench.name, "line": line.name, "setting": one.name(),
                "unit": unit, "noise": line.noise,
            });
            match cell {
                Cell::Measured { summary, ratio } => {
                    value["median"] = summary.median.into();
                    value["spread"] = summary.spread.into();
                    value["runs"] = summary.runs.into();
                    value["ratio"] = (*ratio).into();
                    value["to_best_peer"] = best.zip(*ratio).map(|((_, best), ratio)| ratio / best).into();
                    value["answer"] = "right".into();
                }
                Cell::Wrong => value["answer"] = "wrong".into(),
                Cell::Absent => value["answer"] = "none".into(),
            }
            values.push(value);
        }
    }
    values.extend(failures(&outcome.bench.name, &outcome.failures));
    values
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::with_outcome;
    use super::*;

    #[test]
    fn every_line_and_contestant_is_one_object() {
        let values = with_outcome(&[(&[2.0], "a"), (&[2.0], "a"), (&[1.0], "a"), (&[], "a")], outcome);
        let largesse = values.iter().find(|value| value["setting"] == "largesse").unwrap();
        assert_eq!((&largesse["ratio"], &largesse["line"]), (&json!(0.5), &json!("toeplitz")));
        assert_eq!(values.len(), 3 * 4 + 1);
    }
}
