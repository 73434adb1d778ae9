//! Keeps the heap below the limit on memory of the machine or of a control group.
//!
//! Exceeding a limit ends the process without notice, so the heap is told in advance how many bytes it may
//! hold: its resident bytes, and most of those that are available. The first reading is made with the heap; the helper
//! thread makes later ones, from files in a descriptor table of its own. `malloc` opens no file after the first large
//! block: a program may have forbidden that to itself, or rely on the number of its next descriptor.

use crate::heap::LargeHeap;
use largesse_machine::Room;
use largesse_pages::descriptors;
use largesse_pages::residency::{Answer, Inspector};
use std::path::Path;

/// Number of bytes (or half, where fewer are available) that stay free for stacks, small requests and other processes of the
/// control group.
const SPARE: u64 = 64 << 20;

/// Keeps files open that tell the bytes available, and those of the heap that are resident.
#[derive(Debug)]
pub(crate) struct Limit {
    room: Room,
    pages: Option<Inspector>,
}

impl Limit {
    /// Opens the files in the calling service thread, which gets its own descriptor table; `None` before Linux 5.9.
    pub(crate) fn of_own_thread() -> Option<Limit> {
        descriptors::own_table().ok()?;
        Some(Limit { room: Room::open(Path::new("/")), pages: Inspector::open(None).ok() })
    }

    /// Sets the heap's limit from the bytes available now.
    pub(crate) fn refresh(&self, heap: &LargeHeap) {
        if let Some(available) = self.room.available() {
            set(heap, self.resident(heap), available);
        }
    }

    /// Returns the resident bytes of the heap; 0 before Linux 6.7, whose kernel cannot tell.
    fn resident(&self, heap: &LargeHeap) -> u64 {
        let (start, _) = heap.range();
        let answer = self.pages.as_ref().map(|pages| pages.ask(start as u64, heap.used_range() as u64));
        match answer {
            Some(Answer::Exact(seen)) => seen.resident,
            Some(Answer::NotPerAddress) | None => 0,
        }
    }
}

/// Sets the limit of a new heap.
pub(crate) fn first(heap: &LargeHeap) {
    if let Some(available) = Room::open(Path::new("/")).available() {
        set(heap, 0, available);
    }
}

fn set(heap: &LargeHeap, resident: u64, available: u64) {
    let usable = usable(resident.saturating_add(available));
    heap.set_limit(usize::try_from(usable).unwrap_or(usize::MAX));
}

/// Returns how many of `all` bytes the heap may hold: at most 7/8, and all but [`SPARE`] or half, whichever is less.
fn usable(all: u64) -> u64 {
    all - (all / 8).max(SPARE.min(all / 2))
}

#[cfg(test)]
mod tests {
    use super::usable;

    #[test]
    fn every_limit_leaves_spare_bytes() {
        const MIB: u64 = 1 << 20;
        for (all, want) in [(0, 0), (60, 30), (128, 64), (200, 136), (4096, 3584), (24_576, 21_504)] {
            assert_eq!(usable(all * MIB), want * MIB, "of {all} MiB");
        }
    }
}
