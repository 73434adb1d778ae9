//! Far memory for a session that is running: chosen before its first large block, refused with words
//! afterwards. A session has data in it: it is never ended for a setting.

use crate::guard::Inside;
use crate::options::{FAR_MIN_KB, local_of};
use crate::serve::{self, ROUTING};
use crate::wish::{Engine, Store, Wish};
use crate::{slots, start, timeline};
use core::ffi::{CStr, c_char};
use core::ptr::null;
use largesse_settings::{Misread, local as local_size, page_size as transfer_size};
use std::ffi::CString;
use std::path::PathBuf;

/// Large blocks are far memory from now on.
///
/// # Safety
/// Each argument is NULL or a C string.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn largesse_far_memory(
    local: *const c_char,
    store: *const c_char,
    page_size: *const c_char,
) -> *const c_char {
    let _inside = Inside::enter();
    // SAFETY: the caller's promise.
    let [local, store, page_size] = [local, store, page_size].map(|text| unsafe { words(text) });
    match choose(local.as_deref(), store.as_deref(), page_size.as_deref()) {
        Ok(()) => null(),
        // Kept for good: it is a line, and asked for by hand.
        Err(why) => CString::new(why).unwrap_or_default().into_raw(),
    }
}

/// # Safety
/// NULL or a C string.
unsafe fn words(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise, and not NULL.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn choose(local: Option<&str>, store: Option<&str>, page_size: Option<&str>) -> Result<(), String> {
    let wish = wish(local, store, page_size)?;
    if let Some(why) = slots::why_not() {
        return Err(why.to_string_lossy().into_owned());
    }
    serve::make_far(&wish)?;
    let (min, max, enabled) = ROUTING.limits();
    if min == start::options().min {
        // Nobody asked for a smallest size: that of far memory.
        let _ = ROUTING.set((FAR_MIN_KB << 10).min(min), max);
        ROUTING.enable(enabled);
    }
    timeline::start();
    Ok(())
}

fn wish(local: Option<&str>, store: Option<&str>, page_size: Option<&str>) -> Result<Wish, String> {
    let misread = |what: &str, value: &str, why: Misread| format!("{what} \"{value}\" {why}");
    let text = local.unwrap_or_default();
    let local = local_size(text).map(local_of).map_err(|why| misread("local", text, why))?;
    let store = match store {
        Some(text) => Store::parse(text)
            .ok_or_else(|| format!("store \"{text}\" is not understood; it accepts {}", Store::ACCEPTED))?,
        None => Store::File(default_file()),
    };
    let text = page_size.unwrap_or("auto");
    let page_size = transfer_size(text).map_err(|why| misread("page_size", text, why))?;
    // The program's static arrays have been in use since it started.
    Ok(Wish { local, store, page_size, static_data: false, prefetch: true, engine: Engine::Auto })
}

/// A file in `$TMPDIR`, or where temporary files of any size belong.
fn default_file() -> PathBuf {
    let folder = start::environment("TMPDIR").filter(|it| !it.is_empty());
    PathBuf::from(folder.unwrap_or_else(|| "/var/tmp".into())).join("largesse.far")
}

#[cfg(test)]
mod tests {
    use super::*;
    use largesse_pager::Local;

    #[test]
    fn sizes_are_what_people_write_and_what_has_no_sense_says_what_has() {
        let good = wish(Some("512M"), Some("file:/scratch/a"), Some("64K")).unwrap();
        assert_eq!((good.local, good.page_size), (Local::Bytes(512 << 20), Some(64 << 10)));
        let spaced = wish(Some("512 mb"), None, Some("64KiB")).unwrap();
        assert_eq!((spaced.local, spaced.page_size), (good.local, good.page_size));
        assert_eq!(good.store, Store::File("/scratch/a".into()));
        let share = wish(Some("50%"), None, None).unwrap();
        assert_eq!((share.local, share.page_size), (Local::Percent(50), None));
        for (local, store, page_size, words) in [
            (None, None, None, "local \"\" is not a size"),
            (Some("1000"), None, None, "the least is 1M"),
            (Some("101%"), None, None, "1% to 100%"),
            (Some("1G"), Some("disk"), None, "store \"disk\""),
            (Some("1G"), None, Some("5K"), "not a power of two"),
            (Some("1G"), None, Some("4M"), "above the most, 2M"),
        ] {
            let why = wish(local, store, page_size).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
