//! Holds the limit of this process, and whether it is watched: for files that must not know who watches it.

use crate::message::warn;
use crate::settings::options;
use crate::wanted::WANTED;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use largesse_paging::FarConfig;
use largesse_settings::MemoryLimit;
use std::sync::OnceLock;

/// Whether and how the limit is watched, as in the picture of `spill.rs`.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(OFF);
pub(crate) const OFF: u32 = 0;
pub(crate) const WATCHED: u32 = 1;
pub(crate) const ASKED: u32 = 2;
pub(crate) const FAR: u32 = 3;

/// The limit that a running session has set, in bytes; 0: none, [`AUTO`]: that of its control groups and the machine.
static SESSION_LIMIT: AtomicU64 = AtomicU64::new(0);
const AUTO: u64 = u64::MAX;
/// The far memory that blocks become because of that limit.
pub(crate) static SESSION: OnceLock<FarConfig> = OnceLock::new();
/// Why the first limit could not be kept.
static GIVEN_UP: OnceLock<String> = OnceLock::new();

/// The process whose helper watches the limit. A child of a raw `clone` or of `_Fork` has none.
pub(crate) static OWNER: AtomicU32 = AtomicU32::new(0);

/// The thread that watches the limit, which must not wait for itself.
pub(crate) static HELPER: AtomicU32 = AtomicU32::new(0);

/// Whether the change-over is to be made in any case.
pub(crate) static FORCED: AtomicBool = AtomicBool::new(false);

/// Begins to watch a limit that a running session sets, or another one, for the calling process. The helper may have to
/// be started.
pub(crate) fn set(limit: MemoryLimit) {
    let bytes = match limit {
        MemoryLimit::Auto => AUTO,
        MemoryLimit::Bytes(bytes) => bytes as u64,
    };
    SESSION_LIMIT.store(bytes, Ordering::Relaxed); // Relaxed: before `STATE`
    OWNER.store(std::process::id(), Ordering::Relaxed); // Relaxed: as above
    let _ = STATE.compare_exchange(OFF, WATCHED, Ordering::AcqRel, Ordering::Acquire);
}

/// Returns why the limit could not be kept.
pub(crate) fn why_given_up() -> String {
    GIVEN_UP.get().cloned().unwrap_or_default()
}

/// Returns the limit of the session, or of `--limit`; `None` without one.
pub(crate) fn limit() -> Option<MemoryLimit> {
    // Relaxed: a number by itself.
    match SESSION_LIMIT.load(Ordering::Relaxed) {
        0 => options().limit.as_ref().map(|config| config.limit),
        AUTO => Some(MemoryLimit::Auto),
        bytes => Some(MemoryLimit::Bytes(usize::try_from(bytes).unwrap_or(usize::MAX))),
    }
}

/// Returns the settings of the far memory that blocks become.
pub(crate) fn far_config() -> Option<&'static FarConfig> {
    options().limit.as_ref().map(|config| &config.far).or_else(|| SESSION.get())
}

/// Returns whether the process is kept below a limit.
pub(crate) fn is_watched() -> bool {
    // Relaxed: no other memory depends on it.
    STATE.load(Ordering::Relaxed) != OFF
}

/// Ceases to watch the limit, and prints a line with the reason.
pub(crate) fn give_up(why: &str) {
    if STATE.swap(OFF, Ordering::AcqRel) != OFF {
        let _ = GIVEN_UP.set(why.to_owned());
        warn(&format!("the program is not kept below its limit from now on: {why}"));
    }
}

/// Ceases to watch the limit in a forked child whose heap cannot be used.
pub(crate) fn forget() {
    STATE.store(OFF, Ordering::Relaxed); // Relaxed: the child has one thread
}

/// Has large blocks made far memory, whatever the limit leaves. Returns once that is done, or refused.
pub(crate) fn become_far() {
    FORCED.store(true, Ordering::Relaxed); // Relaxed: before `STATE`
    if STATE.load(Ordering::Relaxed) == WATCHED {
        ask();
    }
    FORCED.store(false, Ordering::Relaxed);
}

/// Has the helper look at the limit now. Returns once it has, and has made blocks far if it must.
#[cold]
pub(crate) fn ask() {
    let is_helper = HELPER.load(Ordering::Relaxed) == largesse_pages::thread_id();
    if OWNER.load(Ordering::Relaxed) != std::process::id() || is_helper {
        return;
    }
    let _ = STATE.compare_exchange(WATCHED, ASKED, Ordering::AcqRel, Ordering::Acquire);
    while STATE.load(Ordering::Acquire) == ASKED {
        // Repeated, since the helper may be about to sleep.
        largesse_pages::wake_one(&WANTED);
        largesse_pages::wait_while_for(&STATE, ASKED, Duration::from_millis(1));
    }
}
