//! The report of `largesse run --report FILE.json`: written at the start, and again at exit. With far
//! memory it ends with a time line, which `FILE.svg` shows as a picture.

use crate::start::{options, warn};
use crate::{far, serve, timeline};
use core::sync::atomic::Ordering;
use largesse_pager::{Count, Counters, SegmentWords};
use largesse_picture::Moment;
use largesse_report::{Cause, Region};
use serde_json::{Map, Value, json};

/// Write the report, if one was asked for.
pub(crate) fn write(state: &str) {
    let Some(path) = &options().report else { return };
    // First: pages go on leaving, and no interval shall have more than the whole.
    let timeline = timeline::finish();
    let mut text = format!("{:#}", describe(state));
    if let Some((intervals, moments)) = timeline {
        // One line an interval: hundreds of them, for machines.
        let rows: Vec<String> = intervals.iter().map(|row| format!("    {row}")).collect();
        text.truncate(text.len() - "\n}".len());
        text += &format!(",\n  \"timeline\": [\n{}\n  ]\n}}", rows.join(",\n"));
        if let Some(stem) = path.strip_suffix(".json") {
            draw(&format!("{stem}.svg"), &moments);
        }
    }
    put(path, "report", &(text + "\n"));
}

fn draw(path: &str, moments: &[Moment]) {
    match largesse_picture::svg(&command().join(" "), moments) {
        Ok(picture) => put(path, "picture", &picture),
        Err(why) => warn(&format!("no picture {path}: {why}")),
    }
}

fn put(path: &str, what: &str, text: &str) {
    if let Err(error) = std::fs::write(path, text) {
        warn(&format!("cannot write the {what} to {path}: {error}"));
    }
}

fn command() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

fn describe(state: &str) -> Value {
    let options = options();
    let counters = serve::heap().map(|heap| heap.with_report(|report| report.counters)).unwrap_or_default();
    let refused: Map<String, Value> = Cause::ALL
        .into_iter()
        .zip(serve::not_granted())
        .filter(|(_, count)| *count > 0)
        .map(|(cause, count)| {
            let text = |s: &core::ffi::CStr| s.to_string_lossy().into_owned();
            (text(cause.name()), json!({ "count": count, "advice": text(cause.advice()) }))
        })
        .collect();
    json!({
        "state": state,
        "pid": std::process::id(),
        "command": command(),
        "settings": {
            "pages": options.pages.word(),
            "min_bytes": options.min,
            "max_bytes": options.max,
            "header": crate::start::header(),
            "lock": options.lock,
            "children": options.children,
        },
        "counters": {
            "allocations": counters.allocations,
            "frees": counters.frees,
            "live_bytes": counters.live_bytes,
            "peak_bytes": counters.peak_bytes,
            "reused": counters.reused,
            "fresh_bytes": counters.fresh_bytes,
            "retained_bytes": counters.retained_bytes,
            "returned_bytes": counters.returned_bytes,
            "populated_bytes": counters.populated_bytes,
            "clear_skipped_bytes": counters.clear_skipped_bytes,
            "resized_in_place": counters.resized_in_place,
            "moved_by_mremap": counters.moved_by_mremap,
            "advised_mappings": counters.advised_mappings,
            "advised_bytes": counters.advised_bytes,
        },
        "far": far(),
        "tuned": crate::tune::report(),
        "not_granted": refused,
    })
}

/// The words of far memory, in all and by region; null without it.
fn far() -> Value {
    let (Some(words), Some(segments)) = (far::counters(), far::segments()) else { return Value::Null };
    let named = |words: &Counters| -> Map<String, Value> {
        let named = Count::NAMES.into_iter().zip(words.all());
        named.map(|(name, word)| (name.to_owned(), word.into())).collect()
    };
    let region = |segment: &SegmentWords| {
        let [start, len, label] =
            [&segment.start, &segment.len, &segment.label].map(|word| word.load(Ordering::Relaxed));
        let mut region = named(&segment.counts);
        region.insert("region".into(), Region::word(label).into());
        region.insert("address".into(), format!("{start:#x}").into());
        region.insert("size".into(), len.into());
        region
    };
    let there = segments.iter().filter(|segment| segment.len.load(Ordering::Relaxed) > 0);
    let mut all = named(words);
    if let Some(store) = far::about_store() {
        all.insert("store".into(), store.name().into());
        all.insert("agent".into(), store.agent.into());
    }
    all.insert("regions".into(), there.map(region).collect());
    Value::Object(all)
}
