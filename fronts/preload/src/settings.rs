//! Holds the settings of this process, which are read from the environment once.

use crate::message::refuse_to_start;
use crate::options::Options;
use crate::slots::object;
use core::ffi::CStr;
use largesse_paging::Store;
use std::ffi::CString;
use std::sync::OnceLock;

static OPTIONS: OnceLock<Options> = OnceLock::new();
static BAD_SETTING: OnceLock<CString> = OnceLock::new();

/// Returns the settings of this process, which the first call reads.
pub(crate) fn options() -> &'static Options {
    OPTIONS.get_or_init(|| match Options::parse(&environment) {
        Ok(options) => options,
        Err(error) if object::is_preloaded() => refuse_to_start(&error.to_string()),
        Err(error) => {
            // A session that loaded the library holds data and must not be ended for a setting.
            let _ = BAD_SETTING.set(CString::new(error.to_string()).unwrap_or_default());
            Options::default()
        }
    })
}

/// Returns the message on a wrong setting, in a session that loaded the library late.
pub(crate) fn bad_setting() -> Option<&'static CStr> {
    options();
    BAD_SETTING.get().map(CString::as_c_str)
}

#[expect(clippy::disallowed_methods, reason = "the one place where this front reads settings")]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns whether this process is the one that `largesse run` became.
pub(crate) fn is_launched() -> bool {
    options().pid == Some(std::process::id())
}

/// Returns whether every thread of the process can use the store of far memory, because that needs no file descriptor.
pub(crate) fn store_is_everywhere() -> bool {
    options().far.as_ref().is_some_and(|config| matches!(config.store, Store::Agent(_)))
}
