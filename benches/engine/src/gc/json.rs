//! The comparison as JSON, one object a line: `machine`, every `run` as it ends, then a `cell` for each program, system and
//! number of threads, and whatever is `absent` or `trouble`.

use super::super::json::troubles;
use super::outcome::{Cell, Outcome};
use super::rounds::Told;
use serde_json::{Value, json};

/// A raw sample.
pub(super) fn run(told: &Told<'_>) -> Value {
    json!({
        "kind": "run", "bench": told.program.name, "setting": told.system.name, "threads": told.threads,
        "times": told.times, "round": told.round, "tests": told.run.tests, "peak": told.run.peak,
    })
}

pub(super) fn outcome(outcome: &Outcome<'_>, reference: &str) -> Vec<Value> {
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
    values.extend(troubles(bench, &outcome.troubles));
    values
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{Rows, with_outcome};
    use super::super::rounds::Miss;
    use super::*;

    #[test]
    fn every_cell_and_every_trouble_is_one_object() {
        let rows: &Rows<'_> = &[
            ("rwlock", &[Ok(&[(1.0, 0.25)]), Ok(&[(4.0, 1.0)])]),
            ("euslisp", &[Ok(&[(2.0, 0.5)]), Err(Miss::Failed("signal 11".into()))]),
        ];
        let values = with_outcome(rows, |definition, it| outcome(it, &definition.reference));
        assert_eq!(values.len(), 2 * 2 + 1);
        assert_eq!((&values[0]["median"], &values[0]["to_reference"]), (&json!(1e-3), &json!(0.5)));
        assert_eq!((&values[1]["gain"], &values[1]["gc_share"]), (&json!(0.5), &json!(0.25)));
        assert_eq!((&values[3]["answer"], &values[3]["threads"]), (&json!("failed"), &json!(2)));
        assert_eq!(values[4]["kind"], "trouble");
    }
}
