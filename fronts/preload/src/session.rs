//! Far memory for a session that is running: chosen before its first large block, refused with words
//! afterwards. A session has data in it: it is never ended for a setting.

use crate::guard::Inside;
use crate::options::FAR_MIN_KB;
use crate::serve::{self, ROUTING};
use crate::wish::{Engine, Store, Wish};
use crate::{slots, start, timeline};
use core::ffi::{CStr, c_char};
use core::ptr::null;
use largesse_pager::{Local, parse_size};
use std::ffi::CString;
use std::path::PathBuf;

/// Less than this is no memory to work with.
const LEAST: usize = 1 << 20;

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
    if start::is_launched() {
        timeline::start();
    }
    Ok(())
}

fn wish(local: Option<&str>, store: Option<&str>, page_size: Option<&str>) -> Result<Wish, String> {
    let refused =
        |what: &str, value: &str, accepts: &str| format!("{what} \"{value}\" is not understood; {accepts}");
    let text = local.unwrap_or_default();
    let local = Local::parse(text).filter(|local| !matches!(local, Local::Bytes(bytes) if *bytes < LEAST));
    let local = local.ok_or_else(|| {
        refused(
            "local",
            text,
            "a size such as \"512M\" or \"4G\", at least \"1M\", or a share from \"1%\" to \"100%\"",
        )
    })?;
    let store = match store {
        Some(text) => Store::parse(text).ok_or_else(|| refused("store", text, Store::ACCEPTED))?,
        None => Store::File(default_file()),
    };
    let page_size = match page_size {
        None | Some("auto") => None,
        Some(text) => {
            let size =
                parse_size(text).filter(|size| size.is_power_of_two() && (4096..=2 << 20).contains(size));
            Some(size.ok_or_else(|| {
                refused("page_size", text, "\"auto\", or a power of two from \"4K\" to \"2M\"")
            })?)
        }
    };
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

    #[test]
    fn sizes_are_what_people_write_and_what_has_no_sense_says_what_has() {
        let good = wish(Some("512M"), Some("file:/scratch/a"), Some("64K")).unwrap();
        assert_eq!((good.local, good.page_size), (Local::Bytes(512 << 20), Some(64 << 10)));
        assert_eq!(good.store, Store::File("/scratch/a".into()));
        let share = wish(Some("50%"), None, None).unwrap();
        assert_eq!((share.local, share.page_size), (Local::Percent(50), None));
        for (local, store, page_size, words) in [
            (None, None, None, "local \"\" is not understood"),
            (Some("1000"), None, None, "at least \"1M\""),
            (Some("101%"), None, None, "\"1%\" to \"100%\""),
            (Some("1G"), Some("disk"), None, "store \"disk\""),
            (Some("1G"), None, Some("5K"), "a power of two"),
            (Some("1G"), None, Some("4M"), "\"4K\" to \"2M\""),
        ] {
            let why = wish(local, store, page_size).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
