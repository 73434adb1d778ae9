//! Sets a limit on the memory of a running session, also after large blocks exist.
//!
//! Wrong settings and refusals are answered with a message: a session holds data and is never ended for a setting.

use crate::backing::HeapBacking;
use crate::fault_engine::SystemCalls;
use crate::guard::Inside;
use crate::heap::LargeHeap;
use crate::heap::backing;
use crate::limit_state;
use crate::limited::LimitedMemory;
use crate::make::heap_or_make;
use crate::session::{answer, default_store, text};
use crate::settings::options;
use crate::slots::eligibility;
use crate::{change_over, helper, late_filter, small};
use core::ffi::c_char;
use largesse_paging::{Amount, FarConfig, FaultEngine, Store};
use largesse_settings::MemoryLimit;

/// Keeps the process below `limit` from now on; returns NULL, or a message that is never freed.
///
/// # Safety
/// Each argument must be NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_limit(limit: *const c_char, store: *const c_char) -> *const c_char {
    let _inside = Inside::enter();
    // SAFETY: the caller's promise.
    let [limit, store] = [limit, store].map(|argument| unsafe { text(argument) });
    answer(choose(limit.as_deref(), store.as_deref()))
}

fn choose(limit: Option<&str>, store: Option<&str>) -> Result<(), String> {
    let (limit, far) = parse(limit, store)?;
    if let Some(why) = eligibility::why_not() {
        return Err(why.to_string_lossy().into_owned());
    }
    let heap = heap_or_make().ok_or("large blocks are not served here; `largesse doctor` says why")?;
    match backing() {
        Some(HeapBacking::Limited(_)) if store.is_some() && limit_state::limit().is_some() => {
            Err("the store was chosen with the first limit: give the limit alone".into())
        }
        Some(HeapBacking::Limited(memory)) => begin(heap, memory, limit, far),
        Some(HeapBacking::Far(_)) => {
            Err("this session has far memory with a bound of its own (far_memory, --local)".into())
        }
        Some(HeapBacking::Near(_)) | None => {
            let (name, accepts) = options().excluded_by_far().unwrap_or(("LARGESSE_PAGES", "auto"));
            Err(format!("{name} is set; it accepts {accepts}"))
        }
    }
}

/// Keeps the process below the limit. Returns once the heap obeys it, as far as it can; the error is the reason why it
/// cannot be kept.
fn begin(heap: &LargeHeap, memory: &LimitedMemory, limit: MemoryLimit, far: FarConfig) -> Result<(), String> {
    if !limit_state::is_watched() {
        // If it was given up, the first store is tried again.
        let far = limit_state::far_config().unwrap_or_else(|| limit_state::SESSION.get_or_init(|| far));
        if memory.far().is_none() {
            let calls = change_over::prepare(far)?;
            filter_calls(calls, memory).inspect_err(|_| change_over::cancel())?;
        }
        heap.edit_report(|_| memory.keep_free_memory());
        heap.each_warm_run(|run| memory.take_back(&run)).map_err(|error| error.to_string())?;
    }
    limit_state::set(limit);
    helper::start(false);
    if late_filter::ensure() {
        limit_state::ask();
    }
    small::begin(options());
    if limit_state::is_watched() { Ok(()) } else { Err(limit_state::why_given_up()) }
}

/// Has the system calls of the calling thread filtered, and those of the threads that it starts, if they need it. The
/// error is the reason why that is not safe, or is refused.
fn filter_calls(calls: SystemCalls, memory: &LimitedMemory) -> Result<(), String> {
    late_filter::want(calls, memory, &[], 0)?;
    late_filter::install().map_err(|why| format!("{why}; `largesse run --limit` begins in time"))
}

fn parse(limit: Option<&str>, store: Option<&str>) -> Result<(MemoryLimit, FarConfig), String> {
    let text = limit.unwrap_or_default();
    let limit = largesse_settings::limit(text).map_err(|why| format!("limit \"{text}\" {why}"))?;
    let store = match store {
        Some(text) => Store::parse(text)
            .filter(|store| matches!(store, Store::File(_)))
            .ok_or_else(|| format!("store \"{text}\" is not understood; it accepts file:PATH"))?,
        None => default_store(),
    };
    let (local, engine) = (Amount::Bytes(0), FaultEngine::Auto);
    Ok((limit, FarConfig { local, store, page_size: None, prefetch: true, engine }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_or_refused() {
        let (limit, far) = parse(Some("8G"), Some("file:/scratch/a")).unwrap();
        assert_eq!((limit, far.store), (MemoryLimit::Bytes(8 << 30), Store::File("/scratch/a".into())));
        assert_eq!(parse(Some("auto"), None).unwrap().0, MemoryLimit::Auto);
        for (limit, store, words) in [
            (None, None, "limit \"\""),
            (Some("1M"), None, "the least, 64M"),
            (Some("1G"), Some("memory:"), "it accepts file:PATH"),
        ] {
            let why = parse(limit, store).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
