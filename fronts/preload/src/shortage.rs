//! Explains the first request for a large block that returns NULL, on standard error.

use crate::errno::Errno;
use crate::guard::Inside;
use crate::message::warn;
use crate::rlimit::soft_limit;
use crate::{heap, routing};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use largesse_store::StoreError;
use largesse_text::counted;

/// Returns `block`, the answer to a request of `size` bytes, and explains it if it is NULL and the heap serves this
/// size. A `realloc` to 0 bytes returns NULL when it has freed the block.
pub(crate) fn answer(size: usize, block: *mut c_void) -> *mut c_void {
    if block.is_null() && size > 0 && routing::takes(size) {
        explain(size);
    }
    block
}

/// Prints once in a process why a request for `size` bytes was refused. A request that exceeds the memory of the
/// machine is not explained, since programs make such requests to see them fail.
#[cold]
pub(crate) fn explain(size: usize) {
    static EXPLAINED: AtomicBool = AtomicBool::new(false);
    // Relaxed: no other memory depends on it.
    if size <= largesse_pages::physical_memory() && !EXPLAINED.swap(true, Ordering::Relaxed) {
        let _inside = Inside::enter();
        let errno = Errno::save();
        let store = heap::far().and_then(|far| far.refused());
        warn(&format!("no memory for {}: {}", counted(size as u64, "byte"), reason(store, soft_limit)));
        errno.put();
    }
}

/// Returns the reason why memory is short: the error of the store of far memory, or else the limits that `limit`
/// returns in bytes.
fn reason(store: Option<&StoreError>, limit: impl Fn(libc::__rlimit_resource_t) -> usize) -> String {
    let file = limit(libc::RLIMIT_FSIZE);
    if let Some(error) = store {
        let advice = match error {
            _ if file != usize::MAX => format!("ulimit -f limits files to {} KiB: raise it", file / 1024),
            StoreError::Full { .. } => "make room there, or choose another store with --far".to_owned(),
            _ => "choose another store with --far".to_owned(),
        };
        return format!("the store of far memory refused it ({error}); {advice}");
    }
    limits(limit).map_or_else(
        || {
            "the kernel refused it; `largesse doctor` shows limits of the machine and of containers"
                .to_owned()
        },
        |limits| format!("{limits}: raise it"),
    )
}

/// Lists the limits on memory of this process; returns `None` if it has none.
fn limits(limit: impl Fn(libc::__rlimit_resource_t) -> usize) -> Option<String> {
    let limits: Vec<_> = [(libc::RLIMIT_AS, "-v"), (libc::RLIMIT_DATA, "-d")]
        .into_iter()
        .filter(|&(what, _)| limit(what) != usize::MAX)
        .map(|(what, option)| format!("ulimit {option} is {} KiB", limit(what) / 1024))
        .collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

/// Appends the limits on memory, if there are any, to the reason `why`.
pub(crate) fn with_limits(why: String) -> String {
    match limits(soft_limit) {
        Some(limits) => format!("{why} ({limits})"),
        None => why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(store: Option<StoreError>, limits: &[(libc::__rlimit_resource_t, usize)], want: &str) {
        let limit = |asked| limits.iter().find(|&&(what, _)| what == asked).map_or(usize::MAX, |it| it.1);
        let words = reason(store.as_ref(), limit);
        assert!(words.contains(want), "\"{words}\" does not contain \"{want}\"");
    }

    #[test]
    fn reasons_name_the_limit() {
        let full = || Some(StoreError::Full { wanted: 4096 });
        let denied = || Some(StoreError::System { call: "fallocate", errno: libc::EPERM });
        check(None, &[], "largesse doctor");
        check(None, &[(libc::RLIMIT_DATA, 2048)], "ulimit -d is 2 KiB: raise it");
        check(
            None,
            &[(libc::RLIMIT_AS, 1 << 20), (libc::RLIMIT_DATA, 2048)],
            "-v is 1024 KiB, ulimit -d is 2 KiB",
        );
        check(full(), &[], "no room for 4096 bytes more); make room there");
        check(full(), &[(libc::RLIMIT_FSIZE, 1 << 20)], "ulimit -f limits files to 1024 KiB");
        check(denied(), &[], "fallocate: Operation not permitted");
    }
}
