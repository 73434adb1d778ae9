//! Leaves room for the copies that the kernel makes after a fork, in a process that is kept below a limit.
//!
//! Parent and child share their pages until one of them writes. Then the kernel makes a copy at once, faster than other
//! pages could be evicted. So as much is left free as the two share: large blocks become far, and pages are evicted,
//! before the fork, and as long as pages are shared, both processes count them twice.
//!
//! ```text
//!   before fork: evict E ─► the two share R − E, and E more is free    R: resident, free: F, so R − E <= F + E
//!   after it:    available − shared bounds each process; each takes a quarter of that at a time
//! ```

use crate::heap::{self, LargeHeap};
use crate::smaps::{self, MappingUse};
use crate::{late_filter, limit_state};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use largesse_pager::Count;
use largesse_pages::base_page;
use std::time::Instant;

/// Longest time for which a fork waits for evictions.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time for which a reading of the shared bytes is used. They only become less, so that an old one errs on the safe
/// side.
const USED_FOR: Duration = Duration::from_millis(250);
/// Least time between two readings, as a multiple of the time that one takes.
const REST: u32 = 50;
/// Fewer shared bytes are not worth another reading.
const FEW: u64 = 1 << 20;
/// Least bytes that far memory keeps resident.
const LEAST: u64 = 4 << 20;

/// Bytes before the reserve of the limit is reached, and resident bytes of this process, when the helper last looked.
static SEEN: [AtomicU64; 2] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
/// Whether a thread makes room for a fork, or forks.
static FORKING: AtomicBool = AtomicBool::new(false);
/// Whether this process has forked, or is a forked child.
static FORKED: AtomicBool = AtomicBool::new(false);
/// Whether this process may share pages with another one.
static SHARES: AtomicBool = AtomicBool::new(false);

/// Notes what the limit leaves, for the next fork.
pub(crate) fn note(before_reserve: u64, resident: u64) {
    SEEN[0].store(before_reserve, Ordering::Relaxed); // Relaxed: estimates, here and below
    SEEN[1].store(resident, Ordering::Relaxed);
}

/// Returns the bytes that were free before the reserve of the limit when the helper last looked.
pub(crate) fn free() -> u64 {
    SEEN[0].load(Ordering::Relaxed)
}

/// Returns whether the helper has looked at the limit before.
pub(crate) fn has_looked() -> bool {
    free() != u64::MAX
}

/// Returns whether the bound of far memory must stay as it is, for a fork.
pub(crate) fn is_forking() -> bool {
    FORKING.load(Ordering::Relaxed)
}

/// Returns whether this process has forked, or is a forked child.
pub(crate) fn has_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Evicts pages until memory has room for a copy of every page that stays resident. The thread that is about to fork
/// calls it, and holds no lock that evictions need.
pub(crate) fn make_room() {
    let [free, all] = [0, 1].map(|word| SEEN[word].load(Ordering::Relaxed));
    let interrupts = || heap::heap().is_some_and(LargeHeap::is_interrupted);
    // Blocks that are too small for the filter are not worth a change-over either.
    let may_become_far = limit_state::is_watched() && !late_filter::is_pending();
    if may_become_far && !heap::is_far() && all > free && !interrupts() {
        limit_state::become_far();
    }
    let Some(far) = heap::far().filter(|_| heap::is_far()) else { return };
    FORKING.store(true, Ordering::Relaxed);
    let pager = far.pager();
    let resident = || pager.counters.get(Count::ResidentBytes);
    let here = resident();
    let evicted = (all.max(here).saturating_sub(free) / 2).min(here.saturating_sub(LEAST));
    let target = here - evicted;
    if evicted > 0 {
        pager.set_local(usize::try_from(target).unwrap_or(usize::MAX) / base_page());
        let began = Instant::now();
        while resident() > target && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Ends what [`make_room`] began, in parent and child, which share pages from now on.
pub(crate) fn is_over() {
    FORKED.store(true, Ordering::Relaxed);
    if FORKING.swap(false, Ordering::Relaxed) {
        SHARES.store(true, Ordering::Relaxed);
        // Another fork may follow before the helper looks.
        let far = heap::far().map_or(0, |far| far.pager().counters.get(Count::ResidentBytes));
        let free = SEEN[0].load(Ordering::Relaxed).saturating_sub(far);
        SEEN[0].store(free, Ordering::Relaxed);
    }
}

/// Bytes of changed pages that another process has, too. Unchanged ones are those of files, which are not copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedCopies {
    pub(crate) all: u64,
    /// Those that are not far memory, so that copies of them cannot be evicted.
    pub(crate) near: u64,
}

/// Reads how many bytes this process shares with others, in the helper thread.
#[derive(Debug, Default)]
pub(crate) struct SharedBytes {
    shared: SharedCopies,
    read_at: Option<Instant>,
    took: Duration,
}

impl SharedBytes {
    /// Returns the bytes of which the kernel may make copies; 0 if no page was shared by a fork.
    pub(crate) fn get(&mut self) -> SharedCopies {
        if !SHARES.load(Ordering::Relaxed) {
            return SharedCopies::default();
        }
        if self.read_at.is_none_or(|at| at.elapsed() >= USED_FOR.max(self.took * REST)) {
            let began = Instant::now();
            // Without the file, a fork is as dangerous as without this.
            self.shared = smaps::own().map_or(SharedCopies::default(), |mappings| sum(&mappings));
            (self.read_at, self.took) = (Some(began), began.elapsed());
            if self.shared.all < FEW {
                SHARES.store(false, Ordering::Relaxed);
                (self.shared, self.read_at) = (SharedCopies::default(), None);
            }
        }
        self.shared
    }
}

fn sum(mappings: &[MappingUse]) -> SharedCopies {
    let mut sum = SharedCopies::default();
    for mapping in mappings {
        let is_far = heap::far().is_some_and(|far| far.is_far(&mapping.at));
        sum.all += mapping.shared;
        sum.near += if is_far { 0 } else { mapping.shared };
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_without_a_fork_shares_nothing() {
        assert_eq!(SharedBytes::default().get(), SharedCopies::default());
        let mapping = |shared| MappingUse { shared, ..MappingUse::default() };
        assert_eq!(sum(&[mapping(3), mapping(4)]), SharedCopies { all: 7, near: 7 });
    }
}
