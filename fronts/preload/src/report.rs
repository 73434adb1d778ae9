//! Writes the report of this process for `largesse run --report`: `PID.json` in the watcher's folder, at the
//! start and again at `exit`. With far memory there is also `PID.timeline`.

use crate::settings::options;
use crate::slots::r::header;
use crate::{causes, far_counters, far_store, heap, record, timeline};
use core::sync::atomic::Ordering;
use largesse_pager::{Count, Counters as FarCounters, SegmentWords};
use largesse_report::{Cause, Counters, HeapReport, Region};
use serde_json::{Map, Value, json};

/// Writes the report of this process, if one was requested. A forked child writes none, since locks that it
/// inherited may never be released; it has its record only.
pub(crate) fn write(state: &str) {
    let Some(folder) = options().report.as_ref().filter(|_| record::is_of_this_program()) else { return };
    let path = format!("{folder}/{}", std::process::id());
    // Before the counters are read: evictions go on, and no interval may have more of them than the whole.
    timeline::write(&format!("{path}.timeline"));
    let report = describe(state).to_string();
    // An error is ignored: without the watcher's folder there is no reader either.
    let _ = std::fs::write(format!("{path}.json"), largesse_text::lines(&report).as_ref());
}

fn command() -> Vec<String> {
    std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect()
}

fn describe(state: &str) -> Value {
    let options = options();
    let counters = heap::heap().map(|heap| heap.with_report(|report| report.counters)).unwrap_or_default();
    let refused: Map<String, Value> = Cause::ALL
        .into_iter()
        .zip(causes::not_granted())
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
            "header": header(),
            "lock": options.lock,
            "children": options.children,
        },
        "counters": named,
        "small_bytes": heap::heap().map_or(0, |heap| heap.with_report(|report| report.small_bytes)),
        "far": far(),
        "limit": limit(),
        "tuned": crate::tune::report(),
        "not_granted": refused,
    })
}

/// Returns the limit below which the process is kept, how long large blocks took to become far memory, and for how long
/// memory has been evicted; null without a limit.
fn limit() -> Value {
    let of = |it: &HeapReport| {
        let since = |second: u64| {
            (second != 0).then(|| u64::from(largesse_pages::now_seconds()).saturating_sub(second))
        };
        json!({
            "bytes": it.limit_bytes,
            "change_over_ms": (it.change_over_ns != 0).then_some(it.change_over_ns as f64 * 1e-6),
            "spilling_seconds": since(it.spilling_since),
            "near_again": it.near_again,
            "near_again_seconds": since(it.near_since),
        })
    };
    let limited = |it: &HeapReport| if it.limit_bytes == 0 { Value::Null } else { of(it) };
    heap::heap().map_or(Value::Null, |heap| heap.with_report(limited))
}

/// Returns the counters of far memory, in total and by segment; null without far memory.
fn far() -> Value {
    let (Some(words), Some(segments)) = (far_counters::all(), far_counters::segments()) else {
        return Value::Null;
    };
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
    if let Some(store) = far_store::about() {
        all.insert("store".into(), store.name().into());
        all.insert("agent".into(), store.agent.into());
    }
    all.insert("regions".into(), there.map(region).collect());
    Value::Object(all)
}
