//! What this process says of itself for `largesse run --report`: `PID.json` in the watcher's folder, written at the
//! start and again at `exit`. With far memory it has a time line.

use crate::start::options;
use crate::{far, record, serve, timeline};
use core::sync::atomic::Ordering;
use largesse_pager::{Count, Counters as FarCounters, SegmentWords};
use largesse_report::{Cause, Counters, Region};
use serde_json::{Map, Value, json};

/// Writes what this process says, if a report was asked for. A forked child has its record only: locks that it
/// inherited may be taken for good.
pub(crate) fn write(state: &str) {
    let Some(folder) = options().report.as_ref().filter(|_| record::is_of_this_program()) else { return };
    // First: pages go on leaving, and no interval shall have more than the whole.
    let timeline = timeline::finish();
    let mut report = describe(state);
    if let Some(intervals) = timeline {
        report["timeline"] = intervals.into();
    }
    let path = format!("{folder}/{}.json", std::process::id());
    // Without the file, the watcher's folder is gone, and with it the reader.
    let _ = std::fs::write(path, largesse_text::lines(&report.to_string()).as_ref());
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
    let named: Map<String, Value> =
        Counters::NAMES.into_iter().map(str::to_owned).zip(counters.all().map(Value::from)).collect();
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
        "counters": named,
        "far": far(),
        "tuned": crate::tune::report(),
        "not_granted": refused,
    })
}

/// The words of far memory, in all and by region; null without it.
fn far() -> Value {
    let (Some(words), Some(segments)) = (far::counters(), far::segments()) else { return Value::Null };
    let named = |words: &FarCounters| -> Map<String, Value> {
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
