//! Formats reports on the heap for users.

use crate::value::Value;
use crate::world::LispWorld;
use largesse_gc::{Collections, FarCollections, Layout, Statistics};
use std::fmt::Write as _;
use std::time::Duration;

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::Slots => "slots",
        Layout::Opaque => "data",
        Layout::Custom => "mixed",
        Layout::Weak => "weak",
    }
}

/// Returns a number of bytes in the largest unit that it reaches, as in `1.5 GiB`.
pub(crate) fn size(bytes: usize) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Returns the number of free words and of all words of the heap.
pub(crate) fn words(statistics: &Statistics) -> [Value; 2] {
    let all = statistics.used_bytes.max(statistics.warm_bytes) / 8;
    let free = all.saturating_sub(statistics.live_bytes / 8);
    [free, all].map(|words| Value::fixnum(words as i64))
}

/// Returns the line about the collections of a heap in far memory; nothing for other heaps.
fn far_collections(collections: &Collections) -> String {
    let Collections { full, partial, .. } = collections;
    if full.far_bytes + partial.far_bytes == 0 {
        return String::new();
    }
    let percent = |of: &FarCollections| of.bytes_read as f64 * 100.0 / of.far_bytes.max(1) as f64;
    format!(
        "{} full collections read {:.1} % of the pages in the store, {} partial ones {:.1} %\n",
        full.count,
        percent(full),
        partial.count,
        percent(partial),
    )
}

/// Returns the lines that `room` prints.
pub(crate) fn room(statistics: &Statistics) -> String {
    let pauses = &statistics.collections.pauses;
    let mut text = format!(
        "{} objects of {} bytes were alive after the last collection\n{} bytes of blocks in use, {} bytes at most\n{:.1} % of the time in collections, {} so far; the next one after {} more bytes\n",
        statistics.live_objects,
        statistics.live_bytes,
        statistics.used_bytes,
        statistics.limit_bytes,
        statistics.gc_share() * 100.0,
        pauses.count(),
        statistics.budget_bytes,
    );
    if pauses.count() > 0 {
        let all = pauses.total().as_secs_f64();
        let part = |time: Duration| time.as_secs_f64() * 100.0 / all;
        let _ = writeln!(
            text,
            "{:.0} % of their time stopping threads, {:.0} % marking, {:.0} % sweeping",
            part(statistics.collections.stopping),
            part(statistics.collections.marking),
            part(statistics.collections.sweeping),
        );
        let _ = writeln!(
            text,
            "median pause {:.2} ms, longest {:.2} ms; {:.1} million objects marked per second",
            pauses.quantile(0.5).as_secs_f64() * 1e3,
            pauses.longest().as_secs_f64() * 1e3,
            statistics.mark_rate() / 1e6,
        );
    }
    text + &far_collections(&statistics.collections)
}

impl LispWorld {
    /// Returns the report on the heap and its backing.
    pub(crate) fn memory_report(&self) -> String {
        memory(&self.heap.statistics())
            + &self.backing_report.get().map(|backing_report| backing_report()).unwrap_or_default()
    }
}

/// Formats the request mix, delegated cells and visits to the keep: tables 1 and 2 of EusLisp (Matsui and Sekiguchi,
/// 1995), and its measure of 1 %.
fn memory(statistics: &Statistics) -> String {
    let mut text = String::from("Requests by size\n   words  layout        cells  of cells  of words\n");
    let cells = statistics.allocations().max(1) as f64;
    let small: f64 = statistics.requests.iter().map(|it| it.cells as f64 * it.words as f64).sum();
    let words = (small + statistics.large_words as f64).max(1.0);
    for it in statistics.requests.iter().filter(|it| it.cells > 0) {
        let _ = writeln!(
            text,
            "{:>8}  {:<6} {:>12} {:>8.2}% {:>8.2}%",
            it.words,
            layout(it.layout),
            it.cells,
            it.cells as f64 * 100.0 / cells,
            it.cells as f64 * it.words as f64 * 100.0 / words,
        );
    }
    let _ = writeln!(
        text,
        "   large  -      {:>12} {:>8.2}% {:>8.2}%",
        statistics.large_requests,
        statistics.large_requests as f64 * 100.0 / cells,
        statistics.large_words as f64 * 100.0 / words,
    );
    text += "Delegated to threads\n  thread    words  layout        cells\n";
    for thread in &statistics.delegated {
        for it in thread.cells.iter().filter(|it| it.cells > 0) {
            let _ = writeln!(
                text,
                "{:>8} {:>8}  {:<6} {:>12}",
                thread.thread,
                it.words,
                layout(it.layout),
                it.cells
            );
        }
    }
    let _ =
        writeln!(text, "Visits to the keep: {:.2} per 1000 allocations", statistics.visits_per_thousand());
    text + &room(statistics)
}
