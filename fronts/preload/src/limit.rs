//! The limit on memory that the heap stays below: the machine's, or that of a control group.
//!
//! Exceeding a limit ends the process without notice, so that the heap is told beforehand how much it may
//! hold: what it has in memory, and most of what is left. The first reading is made with the heap; later
//! ones are the helper thread's, from files in a table of descriptors of its own. `malloc` opens no file
//! after the first large block: a program may have forbidden it to itself, or count on the number that its
//! next descriptor gets.

use crate::serve::LargeHeap;
use largesse_machine::Room;
use largesse_pages::descriptors;
use largesse_pages::residency::{Answer, Inspector};
use std::path::Path;

/// Left to what the heap does not see, in bytes where more is available: stacks, small requests, other
/// processes of the control group.
const SPARE: u64 = 64 << 20;

/// The files that say what is left, and what the heap has in memory.
#[derive(Debug)]
pub(crate) struct Limit {
    room: Room,
    pages: Option<Inspector>,
}

impl Limit {
    /// For a thread of ours, which gets a table of descriptors of its own; `None` before Linux 5.9.
    pub(crate) fn of_own_thread() -> Option<Limit> {
        descriptors::own_table().ok()?;
        Some(Limit { room: Room::open(Path::new("/")), pages: Inspector::open(None).ok() })
    }

    /// Tells the heap how much it may hold now.
    pub(crate) fn refresh(&self, heap: &LargeHeap) {
        if let Some(available) = self.room.available() {
            set(heap, self.resident(heap), available);
        }
    }

    /// Bytes of the heap that are in memory; 0 where the kernel cannot say (before Linux 6.7).
    fn resident(&self, heap: &LargeHeap) -> u64 {
        let (start, _) = heap.range();
        let answer = self.pages.as_ref().map(|pages| pages.ask(start as u64, heap.used_range() as u64));
        match answer {
            Some(Answer::Exact(seen)) => seen.resident,
            Some(Answer::NotPerAddress) | None => 0,
        }
    }
}

/// Tells a new heap how much it may hold.
pub(crate) fn first(heap: &LargeHeap) {
    if let Some(available) = Room::open(Path::new("/")).available() {
        set(heap, 0, available);
    }
}

fn set(heap: &LargeHeap, resident: u64, available: u64) {
    let usable = usable(resident.saturating_add(available));
    heap.set_limit(usize::try_from(usable).unwrap_or(usize::MAX));
}

/// Returns the part of `all` bytes that the heap may hold: all but an eighth, and all but [`SPARE`] or half.
fn usable(all: u64) -> u64 {
    all - (all / 8).max(SPARE.min(all / 2))
}

#[cfg(test)]
mod tests {
    use super::usable;

    #[test]
    fn something_is_left_of_every_limit() {
        const MIB: u64 = 1 << 20;
        for (all, want) in [(0, 0), (60, 30), (128, 64), (200, 136), (4096, 3584), (24_576, 21_504)] {
            assert_eq!(usable(all * MIB), want * MIB, "of {all} MiB");
        }
    }
}
