//! Where this library's own tables and buffers are, so that they are not taken for the program's memory.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Smaller mappings are not noted.
const LEAST: usize = 256 << 10; // bytes
/// Mappings beyond this number are not noted.
const MOST: usize = 256;

/// The address and the length in bytes of one mapping; zero without one.
struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
}

static SLOTS: [Slot; MOST] = [const { Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0) } }; MOST];

// Relaxed throughout: the numbers are for statistics, and nothing is reached through them.

/// Notes a mapping of the library's own.
pub(crate) fn add(start: usize, len: usize) {
    let takes =
        |slot: &&Slot| slot.start.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    if len >= LEAST
        && let Some(slot) = SLOTS.iter().find(takes)
    {
        slot.len.store(len, Ordering::Relaxed);
    }
}

/// Forgets a mapping that [`add`] noted, if it did.
pub(crate) fn remove(start: usize) {
    if let Some(slot) = SLOTS.iter().find(|slot| slot.start.load(Ordering::Relaxed) == start) {
        slot.len.store(0, Ordering::Relaxed);
        slot.start.store(0, Ordering::Relaxed);
    }
}

/// Returns the number of resident bytes of the library's own tables and buffers in a range of addresses.
#[must_use]
pub fn own_bytes(within: &Range<usize>) -> u64 {
    let mut pages = 0;
    for slot in &SLOTS {
        let (start, len) = (slot.start.load(Ordering::Relaxed), slot.len.load(Ordering::Relaxed));
        let (start, end) = (start.max(within.start), start.saturating_add(len).min(within.end));
        if start < end {
            let at = core::ptr::without_provenance_mut(start);
            crate::each_resident(at, end - start, &mut |_| pages += 1);
        }
    }
    pages * crate::base_page() as u64
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn own_pages_count_from_first_touch() {
        let len = 1 << 20;
        let start = crate::mapping_at(len).unwrap();
        let range = start.as_ptr().addr()..start.as_ptr().addr() + len;
        assert_eq!(own_bytes(&range), 0, "bytes of an untouched mapping");
        // SAFETY: the mapping has `len` bytes and is this test's alone.
        unsafe { start.as_ptr().write_bytes(1, len / 2) };
        assert_eq!(own_bytes(&range), len as u64 / 2, "bytes of a mapping of which half was written");
        let quarter = range.start..range.start + len / 4;
        assert_eq!(own_bytes(&quarter), len as u64 / 4, "bytes in a part");
        // SAFETY: nothing uses the mapping any more.
        unsafe { crate::unmap_own(start, len) };
        assert_eq!(own_bytes(&range), 0, "bytes after the end of the mapping");
    }
}
