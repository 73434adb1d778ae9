//! Prints the comparison as JSON, one object a line: `machine`, every `run` as it ends, then a `cell` for each
//! program, system and number of threads, and each `absent` system or `trouble`.

use super::super::json::failures;
use super::outcome::{Cell, GcOutcome};
use super::rounds::SuccessfulRun;
use serde_json::{Value, json};

/// Returns a raw sample.
pub(super) fn run(success: &SuccessfulRun<'_>) -> Value {
    json!({
        "kind": "run", "bench": success.program.name, "setting": success.system.name, "threads": success.threads,
        "times": success.times, "round": success.round, "tests": success.run.tests, "peak": success.run.peak,
    })
}

pub(super) fn outcome(outcome: &GcOutcome<'_>, reference: &str) -> Vec<Value> {
    let bench = &outcome.program.name;
    let mut values = Vec::new();
    for row in &outcome.rows {
        for (place, (threads, cell)) in row.cells.iter().enumerate() {
            let mut value = json!({
                "kind": "cell", "bench": bench, "setting": row.system, "threads": threads, "times": row.times,
                "about": row.about,
            });
            value["answer"] = match cell {
                Cell::Measured { each, gain, gc_share } => {
                    value["median"] = each.median.into();
                    value["spread"] = each.spread.into();
                    value["runs"] = each.runs.into();
                    value["gain"] = gain.median.into();
                    value["gain_spread"] = gain.spread.into();
                    value["gc_share"] = gc_share.map(|share| share.median).into();
                    row.pauses[place].tell(&mut value);
                    if place == 0 {
                        value["to_reference"] = outcome.to_reference(row, reference).into();
                    }
                    "right"
                }
                Cell::Stopped => "stopped",
                Cell::Wrong => "wrong",
                Cell::Failed => "failed",
            }
            .into();
            values.push(value);
        }
    }
    values.extend(failures(bench, &outcome.failures));
    values
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{Rows, with_outcome};
    use super::super::rounds::Failure;
    use super::*;

    #[test]
    fn cells_and_failures_are_objects() {
        let rows: &Rows<'_> = &[
            ("rwlock", &[Ok(&[(1.0, 0.25)]), Ok(&[(4.0, 1.0)])]),
            ("euslisp", &[Ok(&[(2.0, 0.5)]), Err(Failure::Failed("signal 11".into()))]),
        ];
        let values = with_outcome(rows, |definition, it| outcome(it, &definition.reference));
        assert_eq!(values.len(), 2 * 2 + 1);
        assert_eq!((&values[0]["median"], &values[0]["to_reference"]), (&json!(1e-3), &json!(0.5)));
        assert_eq!((&values[1]["gain"], &values[1]["gc_share"]), (&json!(0.5), &json!(0.25)));
        assert_eq!((&values[3]["answer"], &values[3]["threads"]), (&json!("failed"), &json!(2)));
        assert_eq!(values[4]["kind"], "trouble");
    }
}
