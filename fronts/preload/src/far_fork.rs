//! Carries far memory across `fork`: the pager stops during it, and the child starts a pager of its own.
//!
//! A page that is not resident in the child before its pager runs would read as zeros. So no code of the program may
//! run until then: `fork.rs` blocks signals, and the library's handlers are the last before the fork and the first
//! after it (`atfork.rs`).

use crate::lost::LOST;
use crate::message::warn;
use crate::{far, heap};
use largesse_pager::{HeldMappings, HeldPager};
use largesse_paging::AnyStore;

/// Holds the pager's locks, so that the pager stands still, while the process forks.
pub(crate) struct StoppedPager {
    held: HeldPager<'static, AnyStore>,
    mappings: HeldMappings<'static>,
}

/// Stops the pager before `fork`; `None` without far memory. The caller holds the heap's lock, so that no thread
/// allocates far memory.
pub(crate) fn before() -> Option<StoppedPager> {
    let far = heap::far()?;
    let on_stack = 0_u8;
    let here = (&raw const on_stack).addr();
    if [here, largesse_pages::thread_handle()].iter().any(|&at| far.is_far(&(at..at + 1))) {
        // The child could need missing pages of its stack before its own pager runs.
        give_up("the stack of the thread that forks is far memory");
    }
    let mappings = far.mappings();
    Some(StoppedPager { held: far.pager().hold(), mappings })
}

/// Restarts the pager in the parent, which still holds the heap's lock.
pub(crate) fn in_parent(stopped: Option<StoppedPager>) {
    if let Some(StoppedPager { held, mappings }) = stopped {
        held.in_parent();
        drop(mappings);
    }
}

/// Starts the child's own pager, and ends the child if that fails.
pub(crate) fn in_child(stopped: Option<StoppedPager>) {
    let Some(far) = heap::far() else { return };
    let Some(StoppedPager { held, mappings }) = stopped else { return refuse_unstopped() };
    // SAFETY: the child has one thread, and its program does not run yet.
    if let Err(error) = unsafe { held.in_child() } {
        give_up(&error.to_string());
    }
    if let Err(error) = far::start_threads(far.pager()) {
        give_up(&format!("its threads could not be started: {error}"));
    }
    drop(mappings);
}

/// Ends a forked child whose far memory was made by another thread of the parent during the fork, so that its pager was
/// not stopped: the child cannot reach its pages.
pub(crate) fn refuse_unstopped() {
    if heap::far().is_some() {
        give_up("another thread made it during the fork");
    }
}

/// Prints `why` and ends the process, which would otherwise read zeros in place of its pages.
fn give_up(why: &str) -> ! {
    warn(&format!("far memory cannot follow this fork: {why}"));
    // SAFETY: no preconditions; handlers of the program could touch memory that is not there.
    unsafe { libc::_exit(LOST) }
}
