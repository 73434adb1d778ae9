//! Ends the process when far memory is lost.

use crate::message::warn;
use largesse_pager::PagerError;

/// The process exits with this status when far memory is lost: the input/output error of `sysexits.h`.
pub(crate) const LOST: i32 = 74;

/// Ends the process because its pages are unreachable. It has read no wrong data, and must not go on.
pub(crate) fn give_up(error: &str) -> ! {
    largesse_store::borrow_stderr();
    warn(&format!("far memory is lost, and the program with it: {error}"));
    // SAFETY: no preconditions; handlers of the program could touch its lost memory.
    unsafe { libc::_exit(LOST) }
}

/// Ends the process because its pager failed.
pub(crate) fn pager_failed(error: &PagerError) -> ! {
    give_up(&error.to_string())
}
