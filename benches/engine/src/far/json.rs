//! Prints the comparison as JSON, one object a line: `machine`, then for each bench its `footprint`, every `run` as
//! it ends (or that it was `stopped`), a `cell` for each place of the table, a `best` for each share, and each
//! `absent` bench or `trouble`.

use super::super::json::failures;
use super::outcome::{FarOutcome, Slowdown};
use super::rounds::{FarContestant, FarEvent};
use serde_json::{Value, json};

/// Returns the object for an event: a raw sample, or why there is none.
pub(super) fn event(bench: &str, event: &FarEvent<'_>) -> Value {
    let named = |kind: &str, contestant: &FarContestant<'_>, round: &usize| {
        let mut value = json!({ "kind": kind, "bench": bench, "setting": contestant.name(), "round": round });
        if let FarContestant::Far(cell) = contestant {
            value["page_size"] = cell.page_size.into();
            value["local_percent"] = cell.percent.into();
            value["local_bytes"] = cell.local.into();
        }
        value
    };
    match event {
        FarEvent::Footprint(bytes) => json!({ "kind": "footprint", "bench": bench, "bytes": bytes }),
        FarEvent::Run { contestant, round, run, report } => {
            let mut value = named("run", contestant, round);
            value["tests"] = json!(run.tests);
            value["peak"] = json!(run.peak);
            value["far"] = report["far"].clone();
            if report["tuned"].as_array().is_some_and(|cores| !cores.is_empty()) {
                value["tuned"] = report["tuned"].clone();
            }
            value
        }
        FarEvent::Stopped { contestant, round, cap } => {
            let mut value = named("stopped", contestant, round);
            value["cap"] = cap.as_secs().into();
            value
        }
        FarEvent::Skipped(why) => super::super::json::absent(bench, None, why),
    }
}

pub(super) fn outcome(outcome: &FarOutcome<'_>) -> Vec<Value> {
    let (bench, test) = (outcome.bench, outcome.test);
    let stock = outcome.stock.map(|stock| {
        json!({ "median": stock.median, "spread": stock.spread, "runs": stock.runs, "noise": outcome.noise })
    });
    let mut values = vec![json!({ "kind": "stock", "bench": bench, "test": test, "stock": stock })];
    for (size, row) in &outcome.rows {
        for (percent, slowdown) in outcome.percents.iter().zip(row) {
            let mut value = json!({
                "kind": "cell", "bench": bench, "test": test, "page_size": size, "local_percent": percent,
            });
            value["answer"] = match slowdown {
                Slowdown::Measured { summary, ratio } => {
                    value["median"] = summary.median.into();
                    value["spread"] = summary.spread.into();
                    value["runs"] = summary.runs.into();
                    value["ratio"] = (*ratio).into();
                    "right"
                }
                Slowdown::Above(bound) => {
                    value["above"] = (*bound).into();
                    "stopped"
                }
                Slowdown::Wrong => "wrong",
                Slowdown::Failed => "failed",
                Slowdown::Absent => "none",
            }
            .into();
            values.push(value);
        }
    }
    for (column, percent) in outcome.percents.iter().enumerate() {
        let Some((size, ratio)) = outcome.best_fixed(column) else { continue };
        let mut value = json!({
            "kind": "best", "bench": bench, "local_percent": percent, "page_size": size, "ratio": ratio,
        });
        match outcome.auto_to_best(column) {
            Some(Slowdown::Measured { ratio, .. }) => value["auto_to_best"] = ratio.into(),
            Some(Slowdown::Above(bound)) => value["auto_to_best_above"] = bound.into(),
            _ => {}
        }
        values.push(value);
    }
    values.extend(failures(bench, &outcome.failures));
    values
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{samples, with_outcome};
    use super::*;

    #[test]
    fn every_cell_and_every_best_is_one_object() {
        let values = with_outcome(|_| samples(&[2.0], "aa"), |_, it| outcome(it));
        let of = |kind: &str| values.iter().filter(|value| value["kind"] == kind).count();
        assert_eq!((of("stock"), of("cell"), of("best"), of("trouble")), (1, 35, 5, 0));
        let cell = values.iter().find(|value| value["page_size"] == "64K" && value["local_percent"] == 25);
        assert_eq!(cell.unwrap()["ratio"], 2.0);
    }
}
