//! Far memory, in all and by region.

use super::{number, pairs, right, size, table};
use crate::status::portrait::{Far, FarRegion, Words};
use comfy_table::{Cell, ContentArrangement, Table};
use std::cmp::Reverse;
use std::fmt::Write as _;

/// Regions that a table shows: those that were waited for most.
const MOST_SHOWN: usize = 20;

pub(super) fn all(far: &Far) -> String {
    let mut text = format!("\nFar memory in {}\n{}\n", far.store, totals(&far.words));
    if let Some(agent) = &far.agent {
        let (all, locked) = (size(agent.memory_bytes), size(agent.locked_bytes));
        let _ = writeln!(text, "  held by process {}: {all} in memory, locked {locked}", agent.pid);
    }
    if far.regions.len() > 1 {
        let mut regions: Vec<_> = far.regions.iter().collect();
        regions.sort_by_key(|region| Reverse(word(&region.words, "wait_ns")));
        let more = regions.len().saturating_sub(MOST_SHOWN);
        regions.truncate(MOST_SHOWN);
        let _ = writeln!(text, "\nBy region\n{}", by_region(&regions));
        if more > 0 {
            let _ = writeln!(text, "  and {more} more, which were waited for less (--json shows all)");
        }
    }
    text
}

fn word(words: &Words, name: &str) -> u64 {
    words.get(name).copied().unwrap_or(0)
}

fn seconds(words: &Words, name: &str) -> String {
    format!("{:.2} s", word(words, name) as f64 * 1e-9)
}

fn totals(words: &Words) -> Table {
    let count = |name| word(words, name).to_string();
    let bytes = |name| size(word(words, name));
    pairs(&[
        [("in all", bytes("mapped_bytes")), ("moves together", bytes("set_bytes"))],
        [("here", bytes("resident_bytes")), ("may be here", bytes("local_bytes"))],
        [("in the store", bytes("stored_bytes")), ("pinned by a device", count("pinned"))],
        [("faults served", count("faults")), ("to write only", count("write_faults"))],
        [("pages from the store", count("fills")), ("new, zero", count("zero_fills"))],
        [("pages that left", count("evictions")), ("written to the store", count("write_backs"))],
        [("read from the store", bytes("bytes_in")), ("written", bytes("bytes_out"))],
        [("threads waited", seconds(words, "wait_ns")), ("for room", seconds(words, "room_ns"))],
        [("dropped unwritten", count("dropped")), ("over the limit", count("over_limit"))],
        [("fetched ahead of need", count("prefetched")), ("of these in time", count("prefetch_hits"))],
    ])
}

/// One region a row: pages unless the unit says otherwise.
fn by_region(regions: &[&FarRegion]) -> Table {
    let columns = [
        "region", "address", "in all", "here", "in store", "set", "faults", "fills", "ahead", "in time",
        "left", "written", "moved", "waited",
    ];
    let numbers: Vec<usize> = (2..columns.len()).collect();
    let mut table = table(&columns, &numbers);
    table.set_content_arrangement(ContentArrangement::Disabled);
    for region in regions {
        let words = &region.words;
        let count = |name| number(word(words, name));
        let bytes = |name| right(size(word(words, name)));
        table.add_row([
            Cell::new(region.region),
            Cell::new(&region.address),
            bytes("mapped_bytes"),
            bytes("resident_bytes"),
            bytes("stored_bytes"),
            bytes("set_bytes"),
            count("faults"),
            count("fills"),
            count("prefetched"),
            count("prefetch_hits"),
            count("evictions"),
            count("write_backs"),
            right(size(word(words, "bytes_in").saturating_add(word(words, "bytes_out")))),
            right(seconds(words, "wait_ns")),
        ]);
    }
    table
}
