//! The report of `largesse run --report FILE.json`: written at the start, and again at exit.

use crate::serve;
use crate::start::{options, warn};
use largesse_pager::Count;
use largesse_report::Cause;
use serde_json::{Map, Value, json};

/// Write the report, if one was asked for.
pub(crate) fn write(state: &str) {
    let Some(path) = &options().report else { return };
    let text = format!("{:#}\n", describe(state));
    if let Err(error) = std::fs::write(path, text) {
        warn(&format!("cannot write the report to {path}: {error}"));
    }
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
    let far = crate::far::counters().map(|words| {
        let named = Count::NAMES.into_iter().zip(words.all());
        named.map(|(name, word)| (name.to_owned(), word.into())).collect::<Map<String, Value>>()
    });
    json!({
        "state": state,
        "pid": std::process::id(),
        "command": std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>(),
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
        "far": far,
        "tuned": crate::tune::report(),
        "not_granted": refused,
    })
}
