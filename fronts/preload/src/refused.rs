//! One line on standard error when a request of the user is first served with less than it asked for.
//!
//! The launcher says before the program starts what the machine will not grant; what it said is not said
//! again. Only the process that the launcher became speaks: its children would repeat it.

use crate::guard::Inside;
use crate::serve::{self, LargeHeap};
use crate::start;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use largesse_arena::{Backing, Refusal};
use largesse_report::Cause;

/// Causes of which the user asked for the contrary, by an option.
const ASKED_FOR: [Cause; 9] = [
    Cause::HugetlbPoolEmpty,
    Cause::HugetlbRefused,
    Cause::LockRefused,
    Cause::NodeRefused,
    Cause::ThpNever,
    Cause::ThpDisabledForProcess,
    Cause::ThpRefused,
    Cause::Pages64kNotOffered,
    Cause::Pages64kOvertaken,
];
/// Those that are found out block by block.
const BY_BLOCK: [Refusal; 4] = [Refusal::PoolEmpty, Refusal::PoolRefused, Refusal::Lock, Refusal::Place];
/// The causes, comma-separated by name, that the launcher spoke of.
const FORETOLD: &str = "LARGESSE_FORETOLD";

/// A bit for each cause that was spoken of; the bit beyond all of them says that the launcher's are among them.
static SAID: AtomicU32 = AtomicU32::new(0);
const FORETOLD_READ: u32 = 1 << 31;
/// Sum over [`BY_BLOCK`] when it was last looked at.
static LOOKED: AtomicU64 = AtomicU64::new(0);

/// Speaks of what was not granted, if anything was refused since the last call.
pub(crate) fn say_new(heap: &LargeHeap) {
    let Some(ground) = serve::ground() else { return };
    let now = BY_BLOCK.into_iter().map(|what| ground.refused(what)).sum();
    // Relaxed: a statistic; two threads that look at once set the same bits.
    if LOOKED.swap(now, Ordering::Relaxed) != now {
        say(heap);
    }
}

/// Speaks of what was not granted and was not spoken of yet.
#[cold]
pub(crate) fn say(heap: &LargeHeap) {
    if !start::is_launched() {
        return;
    }
    let _inside = Inside::enter();
    let counts = heap.with_report(|report| report.not_granted);
    if SAID.load(Ordering::Relaxed) & FORETOLD_READ == 0 {
        let foretold = start::environment(FORETOLD).unwrap_or_default();
        let is_foretold =
            |cause: &Cause| foretold.split(',').any(|name| name.as_bytes() == cause.name().to_bytes());
        let bits =
            ASKED_FOR.into_iter().filter(is_foretold).fold(FORETOLD_READ, |bits, cause| bits | bit(cause));
        SAID.fetch_or(bits, Ordering::Relaxed);
    }
    for cause in ASKED_FOR.into_iter().filter(|&cause| counts[cause as usize] > 0) {
        if SAID.fetch_or(bit(cause), Ordering::Relaxed) & bit(cause) == 0 {
            start::warn(cause.advice().to_str().unwrap_or_default());
        }
    }
}

const fn bit(cause: Cause) -> u32 {
    1 << cause as u32
}
