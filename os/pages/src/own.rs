//! Records the mappings of this library's own tables and buffers, so that they are not counted as the program's memory.

use crate::sys;
use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Smallest length in bytes of a mapping that is recorded.
const MIN_BYTES: usize = 256 << 10;
/// Largest number of mappings that are recorded at once.
const MAX_MAPPINGS: usize = 256;

/// The address and the length in bytes of one recorded mapping; both are zero in a free entry.
struct OwnMapping {
    start: AtomicUsize,
    len: AtomicUsize,
}

static MAPPINGS: [OwnMapping; MAX_MAPPINGS] =
    [const { OwnMapping { start: AtomicUsize::new(0), len: AtomicUsize::new(0) } }; MAX_MAPPINGS];

// Relaxed throughout: the numbers are for statistics, and no memory is reached through them.

/// Records a mapping of the library's own, if it is large enough and an entry is free.
pub(crate) fn add(start: usize, len: usize) {
    let takes = |entry: &&OwnMapping| {
        entry.start.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    if len >= MIN_BYTES
        && let Some(entry) = MAPPINGS.iter().find(takes)
    {
        entry.len.store(len, Ordering::Relaxed);
    }
}

/// Removes the record of a mapping, if [`add`] made one.
pub(crate) fn remove(start: usize) {
    if let Some(entry) = MAPPINGS.iter().find(|entry| entry.start.load(Ordering::Relaxed) == start) {
        entry.len.store(0, Ordering::Relaxed);
        entry.start.store(0, Ordering::Relaxed);
    }
}

/// Returns the number of resident bytes of the library's own tables and buffers in a range of addresses.
#[must_use]
pub fn own_bytes(within: &Range<usize>) -> u64 {
    let mut pages = 0;
    for entry in &MAPPINGS {
        let (start, len) = (entry.start.load(Ordering::Relaxed), entry.len.load(Ordering::Relaxed));
        let (start, end) = (start.max(within.start), start.saturating_add(len).min(within.end));
        if start < end {
            let Some(at) = core::ptr::NonNull::new(core::ptr::without_provenance_mut(start)) else {
                continue;
            };
            sys::each_resident(at, end - start, &mut |_| pages += 1);
        }
    }
    pages * sys::base_page() as u64
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
