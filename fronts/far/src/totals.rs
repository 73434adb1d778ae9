//! Formats the counters of far memory as a table.

use largesse_terminal::size::size;
use largesse_terminal::table::{Paper, facts};
use std::collections::BTreeMap;

/// Values of counters by name.
pub type Words = BTreeMap<&'static str, u64>;

/// Returns a counter by its name; 0 if there is none.
#[must_use]
pub fn word(words: &Words, name: &str) -> u64 {
    words.get(name).copied().unwrap_or(0)
}

/// Formats a counter of nanoseconds in seconds.
#[must_use]
pub fn seconds(words: &Words, name: &str) -> String {
    format!("{:.2} s", word(words, name) as f64 * 1e-9)
}

/// Formats the transfer sizes in force: two sizes if they differ between regions.
#[must_use]
pub fn transfer_sizes(words: &Words) -> String {
    let [least, most] = ["least_set_bytes", "most_set_bytes"].map(|name| size(word(words, name)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// Returns the number of faults that were handled on another CPU, or by a signal handler.
fn on_another_cpu(words: &Words) -> String {
    word(words, "faults").saturating_sub(word(words, "beside")).to_string()
}

/// Returns the table of all counters of far memory.
#[must_use]
pub fn totals(words: &Words, paper: Paper) -> String {
    let count = |name| word(words, name).to_string();
    let bytes = |name| size(word(words, name));
    let mut pairs = vec![
        ("in all", bytes("mapped_bytes")),
        ("transfer size", transfer_sizes(words)),
        ("resident", bytes("resident_bytes")),
        ("local limit", bytes("local_bytes")),
        ("in the store", bytes("stored_bytes")),
        ("pinned by a device", count("pinned")),
        ("faults handled", count("faults")),
        ("to write only", count("write_faults")),
        ("on the faulting CPU", count("beside")),
        ("on another CPU", on_another_cpu(words)),
        ("pages from the store", count("fills")),
        ("new, zero", count("zero_fills")),
        ("pages evicted", count("evictions")),
        ("written to the store", count("write_backs")),
        ("read from the store", bytes("bytes_in")),
        ("written", bytes("bytes_out")),
        ("threads waited", seconds(words, "wait_ns")),
        ("for room", seconds(words, "room_ns")),
        ("dropped unwritten", count("dropped")),
        ("segments", count("segments")),
        ("over the limit", count("over_limit")),
        ("no room in the store", count("no_room")),
        ("prefetched", count("prefetched")),
        ("of these in time", count("prefetch_hits")),
    ];
    // Memory outside of far memory is only shown if it is large.
    if word(words, "uncovered_bytes") > 0 {
        pairs.push(("not covered by --local", bytes("uncovered_bytes")));
    }
    facts(&pairs, paper)
}
