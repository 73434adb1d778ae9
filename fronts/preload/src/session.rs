//! Gives far memory to a running session before its first large block.
//!
//! Later requests, and wrong settings, are refused with a message: a session holds data and is never ended for a
//! setting.

use crate::guard::Inside;
use crate::slots::eligibility;
use crate::{make, routing, settings, timeline};
use core::ffi::{CStr, c_char};
use core::ptr::null;
use largesse_paging::{FarConfig, FaultEngine, Store, default_file};
use largesse_settings::{Misread, local as local_size, page_size as transfer_size};
use std::ffi::CString;

/// Makes large blocks far memory from now on; returns NULL, or a message that is never freed.
///
/// # Safety
/// Each argument must be NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_far_memory(
    local: *const c_char,
    store: *const c_char,
    page_size: *const c_char,
) -> *const c_char {
    let _inside = Inside::enter();
    // SAFETY: the caller's promise.
    let [local, store, page_size] = [local, store, page_size].map(|argument| unsafe { text(argument) });
    answer(choose(local.as_deref(), store.as_deref(), page_size.as_deref()))
}

/// Returns NULL, or the message of an error, which is never freed.
pub(crate) fn answer(outcome: Result<(), String>) -> *const c_char {
    match outcome {
        Ok(()) => null(),
        // Leaked: it is one line, and users call this by hand.
        Err(why) => CString::new(why).unwrap_or_default().into_raw(),
    }
}

/// Returns the store of a session that names none.
pub(crate) fn default_store() -> Store {
    Store::File(default_file(settings::environment("TMPDIR").map(Into::into)))
}

/// Copies an argument; returns `None` for NULL.
///
/// # Safety
/// `argument` must be NULL or a C string.
pub(crate) unsafe fn text(argument: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise, and not NULL.
    (!argument.is_null()).then(|| unsafe { CStr::from_ptr(argument) }.to_string_lossy().into_owned())
}

fn choose(local: Option<&str>, store: Option<&str>, page_size: Option<&str>) -> Result<(), String> {
    let config = parse_config(local, store, page_size)?;
    if let Some(why) = eligibility::why_not() {
        return Err(why.to_string_lossy().into_owned());
    }
    make::make_far(&config)?;
    routing::serve_far_sizes();
    timeline::start();
    Ok(())
}

fn parse_config(
    local: Option<&str>,
    store: Option<&str>,
    page_size: Option<&str>,
) -> Result<FarConfig, String> {
    let misread = |what: &str, value: &str, why: Misread| format!("{what} \"{value}\" {why}");
    let text = local.unwrap_or_default();
    let local = local_size(text).map_err(|why| misread("local", text, why))?;
    let store = match store {
        Some(text) => Store::parse(text)
            .ok_or_else(|| format!("store \"{text}\" is not understood; it accepts {}", Store::ACCEPTED))?,
        None => default_store(),
    };
    let text = page_size.unwrap_or("auto");
    let page_size = transfer_size(text).map_err(|why| misread("page_size", text, why))?;
    Ok(FarConfig { local, store, page_size, prefetch: true, engine: FaultEngine::Auto })
}

#[cfg(test)]
mod tests {
    use super::*;
    use largesse_paging::Amount;

    #[test]
    fn arguments_are_parsed_or_refused() {
        let good = parse_config(Some("512M"), Some("file:/scratch/a"), Some("64K")).unwrap();
        assert_eq!((good.local, good.page_size), (Amount::Bytes(512 << 20), Some(64 << 10)));
        let spaced = parse_config(Some("512 mb"), None, Some("64KiB")).unwrap();
        assert_eq!((spaced.local, spaced.page_size), (good.local, good.page_size));
        assert_eq!(good.store, Store::File("/scratch/a".into()));
        let share = parse_config(Some("50%"), None, None).unwrap();
        assert_eq!((share.local, share.page_size), (Amount::Percent(50), None));
        for (local, store, page_size, words) in [
            (None, None, None, "local \"\" is not a size"),
            (Some("1000"), None, None, "the least is 1M"),
            (Some("101%"), None, None, "1% to 100%"),
            (Some("1G"), Some("disk"), None, "store \"disk\""),
            (Some("1G"), None, Some("5K"), "not a power of two"),
            (Some("1G"), None, Some("4M"), "above the most, 2M"),
        ] {
            let why = parse_config(local, store, page_size).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
