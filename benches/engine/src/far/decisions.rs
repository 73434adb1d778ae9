//! Shows the tuner's decisions on a marked program, iteration by iteration, as its report has them.

use super::outcome::FarOutcome;
use largesse_terminal::table::{Column, Paper, Table};
use serde::Deserialize;
use serde_json::Value;

/// One iteration of the compute core.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub(super) struct Pass {
    /// Transfer size in bytes.
    set_bytes: u64,
    /// Number of transfer units that were swapped in, and of those that fit.
    working_set: u64,
    local_sets: u64,
    seconds: f64,
}

#[derive(Deserialize)]
struct Core {
    iterations: Vec<Pass>,
}

/// Returns the iterations of the program's first core; none if it marks none.
pub(super) fn of(report: &Value) -> Vec<Pass> {
    let cores: Vec<Core> = serde_json::from_value(report["tuned"].clone()).unwrap_or_default();
    cores.into_iter().next().map(|core| core.iterations).unwrap_or_default()
}

/// Returns a table of iterations by shares of local memory; empty for a program without marks.
pub(super) fn show(outcome: &FarOutcome<'_>, paper: Paper) -> String {
    let most = outcome.decisions.iter().map(|passes| passes.len()).max().unwrap_or(0);
    if most == 0 {
        return String::new();
    }
    let shares = outcome.percents.iter().map(|percent| Column::number(format!("{percent}%")).spare(1));
    let mut table = Table::new(std::iter::once(Column::number("iteration")).chain(shares));
    for turn in 0..most {
        let cells = outcome.decisions.iter().map(|passes| passes.get(turn).map_or("-".into(), shown));
        table.row(std::iter::once((turn + 1).to_string()).chain(cells));
    }
    let mut text = String::from("marked: page size, sets swapped in/sets that fit, seconds (last run)\n");
    text += &table.show(paper);
    text
}

fn shown(pass: &Pass) -> String {
    let kib = pass.set_bytes >> 10;
    let size = if kib < 1024 { format!("{kib}K") } else { format!("{}M", kib >> 10) };
    format!("{size} {}/{} {:.2}", pass.working_set, pass.local_sets, pass.seconds)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::tests::{samples, with_outcome};
    use super::super::rounds::Samples;
    use super::super::spec::MARKED;
    use super::*;
    use serde_json::json;

    #[test]
    fn marked_programs_show_each_iteration() {
        let pass = |set: u64, working: u64, fit: u64, seconds: f64| {
            json!({ "set_bytes": set << 10, "working_set": working, "local_sets": fit, "seconds": seconds,
                    "next_set_bytes": 4096 })
        };
        let passes = [pass(128, 1280, 1216, 14.5), pass(64, 2510, 2432, 18.47), pass(2048, 4163, 4864, 0.82)];
        let report = json!({ "tuned": [{ "id": "core", "iterations": passes }] });
        let text = with_outcome(
            |cell| {
                let decisions =
                    if cell.page_size == MARKED && cell.percent == 50 { of(&report) } else { Vec::new() };
                Samples { decisions, ..samples(&[2.0], "aa") }
            },
            |_, outcome| show(outcome, Paper::plain(None)),
        );
        for words in ["128K 1280/1216 14.50", "64K 2510/2432 18.47", "2M 4163/4864 0.82"] {
            assert!(text.contains(words), "{text}");
        }
        assert_eq!(text.lines().filter(|line| line.contains('/')).count(), 1 + 3, "{text}");
        let unmarked =
            with_outcome(|_| samples(&[2.0], "aa"), |_, outcome| show(outcome, Paper::plain(None)));
        assert_eq!((unmarked, of(&Value::Null)), (String::new(), Vec::new()));
    }
}
