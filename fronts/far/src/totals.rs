//! The counters of far memory as a table.

use largesse_terminal::size::size;
use largesse_terminal::table::{Paper, facts};
use std::collections::BTreeMap;

/// Counters by their names.
pub type Words = BTreeMap<&'static str, u64>;

/// A counter by its name; 0 where it is not known.
#[must_use]
pub fn word(words: &Words, name: &str) -> u64 {
    words.get(name).copied().unwrap_or(0)
}

/// A counter of nanoseconds, in seconds.
#[must_use]
pub fn seconds(words: &Words, name: &str) -> String {
    format!("{:.2} s", word(words, name) as f64 * 1e-9)
}

/// What moves together: more than one size where places are tuned each by itself.
#[must_use]
pub fn sets(words: &Words) -> String {
    let [least, most] = ["least_set_bytes", "most_set_bytes"].map(|name| size(word(words, name)));
    if least == most { least } else { format!("{least} to {most}") }
}

/// Faults for which a thread was woken on another processor, or that a signal told of.
fn otherwise(words: &Words) -> String {
    word(words, "faults").saturating_sub(word(words, "beside")).to_string()
}

/// What happened in all of far memory.
#[must_use]
pub fn totals(words: &Words, paper: Paper) -> String {
    let count = |name| word(words, name).to_string();
    let bytes = |name| size(word(words, name));
    let mut pairs = vec![
        ("in all", bytes("mapped_bytes")),
        ("moves together", sets(words)),
        ("here", bytes("resident_bytes")),
        ("may be here", bytes("local_bytes")),
        ("in the store", bytes("stored_bytes")),
        ("pinned by a device", count("pinned")),
        ("faults served", count("faults")),
        ("to write only", count("write_faults")),
        ("served beside who waits", count("beside")),
        ("otherwise", otherwise(words)),
        ("pages from the store", count("fills")),
        ("new, zero", count("zero_fills")),
        ("pages that left", count("evictions")),
        ("written to the store", count("write_backs")),
        ("read from the store", bytes("bytes_in")),
        ("written", bytes("bytes_out")),
        ("threads waited", seconds(words, "wait_ns")),
        ("for room", seconds(words, "room_ns")),
        ("dropped unwritten", count("dropped")),
        ("segments", count("segments")),
        ("over the limit", count("over_limit")),
        ("no room in the store", count("no_room")),
        ("fetched ahead of need", count("prefetched")),
        ("of these in time", count("prefetch_hits")),
    ];
    // Few bytes are not counted.
    if word(words, "uncovered_bytes") > 0 {
        pairs.push(("not covered by --local", bytes("uncovered_bytes")));
    }
    facts(&pairs, paper)
}
