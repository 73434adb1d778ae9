//! Formats the counters of far memory, in total and by segment.

use super::known::known;
use crate::status::process_snapshot::{FarRegion, FarSnapshot};
use largesse_far::totals::{seconds, totals, transfer_sizes, word};
use largesse_terminal::size;
use largesse_terminal::table::{Column, Paper, Table};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Maximum number of segments in the table, since more columns do not fit. Those for which threads waited longest are
/// shown.
const MOST_SHOWN: usize = 5;

pub(super) fn all(far: &FarSnapshot, paper: Paper) -> String {
    let mut text = format!("\nFar memory in {}\n{}", far.store, totals(&far.words, paper));
    if let Some(agent) = &far.agent {
        let (all, locked) = (known(agent.memory_bytes), known(agent.locked_bytes));
        let _ = writeln!(text, "  held by process {}: {all} in memory, locked {locked}", agent.pid);
    }
    if far.regions.len() > 1 {
        let mut regions: Vec<_> = far.regions.iter().collect();
        regions.sort_by_key(|region| Reverse(word(&region.words, "wait_ns")));
        let more = regions.len().saturating_sub(MOST_SHOWN);
        regions.truncate(MOST_SHOWN);
        let _ = write!(text, "\nBy region\n{}", by_region(&regions).show(paper));
        if more > 0 {
            let _ = writeln!(text, "  and {more} more, for which threads waited less (--json shows all)");
        }
    }
    text
}

/// Returns the table with one column for each segment.
fn by_region(regions: &[&FarRegion]) -> Table {
    let columns = regions.iter().enumerate().map(|(place, region)| {
        let column = Column::number(region.region);
        // The first region, for which threads waited longest, is always shown.
        if place == 0 { column } else { column.spare(1) }
    });
    let mut table = Table::new(std::iter::once(Column::text("", 12)).chain(columns));
    let mut row = |title: &str, of: &dyn Fn(&FarRegion) -> String| {
        table.row(std::iter::once(title.to_owned()).chain(regions.iter().map(|region| of(region))));
    };
    let bytes = |name: &'static str| move |region: &FarRegion| size(word(&region.words, name));
    let count = |name: &'static str| move |region: &FarRegion| word(&region.words, name).to_string();
    row("address", &|region| region.address.clone());
    row("in all", &bytes("mapped_bytes"));
    row("resident", &bytes("resident_bytes"));
    row("in the store", &bytes("stored_bytes"));
    row("transfer size", &|region| transfer_sizes(&region.words));
    row("faults handled", &count("faults"));
    row("pages from the store", &count("fills"));
    row("prefetched", &count("prefetched"));
    row("of these in time", &count("prefetch_hits"));
    row("pages evicted", &count("evictions"));
    row("written to the store", &count("write_backs"));
    row("moved", &|region| {
        let words = &region.words;
        size(word(words, "bytes_in").saturating_add(word(words, "bytes_out")))
    });
    row("threads waited", &|region| seconds(&region.words, "wait_ns"));
    table
}
