//! Lists the static arrays that are near under a limit, and become far memory with the first blocks.
//!
//! ```text
//!   listed ──change-over──► far memory, in place
//!     │ munmap, mmap, mremap, mlock, some advice, or no room in the store
//!     └──► near for good
//! ```
//! The list is made before the program starts. Parts that were zero at the start are listed; initial values are pages of
//! a file, which cannot be replaced while threads use them.

use crate::guard::Inside;
use crate::near_mappings;
use crate::statics::{self, Piece};
use core::ffi::c_int;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use largesse_pages::base_page;
use largesse_pages::residency::{Answer as Seen, Inspector};
use std::sync::OnceLock;

/// Smallest size in bytes of a piece that is listed.
const SMALLEST: usize = 1 << 20;

/// The list; empty without a limit.
static LISTED: OnceLock<Vec<ListedPiece>> = OnceLock::new();

/// A piece of static arrays, with one of the states [`NEAR`], [`LEFT_NEAR`] and [`FAR`], which changes under the lock of
/// `near_mappings.rs`.
#[derive(Debug)]
struct ListedPiece {
    at: Range<usize>,
    state: AtomicU32,
}

/// The piece becomes far at the change-over.
const NEAR: u32 = 0;
/// The piece never becomes far.
const LEFT_NEAR: u32 = 1;
/// The piece is far memory.
const FAR: u32 = 2;

impl ListedPiece {
    /// Returns whether the piece is far, or may become so.
    fn is_ours(&self) -> bool {
        // Relaxed: a hint, or under the lock that orders it.
        self.state.load(Ordering::Relaxed) != LEFT_NEAR
    }

    fn is_near(&self) -> bool {
        self.state.load(Ordering::Relaxed) == NEAR // Relaxed: as above
    }

    fn touches(&self, at: &Range<usize>) -> bool {
        at.start < self.at.end && self.at.start < at.end
    }
}

fn listed() -> &'static [ListedPiece] {
    LISTED.get().map_or(&[], Vec::as_slice)
}

/// Lists the static arrays that become far near the limit. Called once, before the program starts. Returns the segments
/// that have them, on which system calls must be filtered.
pub(crate) fn begin() -> Vec<Range<usize>> {
    let can = |piece: &Piece| !piece.from_file && piece.at.len() >= SMALLEST;
    let pieces: Vec<_> = statics::pieces().into_iter().filter(can).collect();
    let piece = |it: &Piece| ListedPiece { at: it.at.clone(), state: AtomicU32::new(NEAR) };
    let _ = LISTED.set(pieces.iter().map(piece).collect());
    statics::around(pieces.iter())
}

/// Returns the number of bytes that are listed.
pub(crate) fn bytes() -> usize {
    listed().iter().map(|piece| piece.at.len()).sum()
}

/// Returns the part of the addresses `at` that lies in a listed piece, near or far. Takes no lock.
pub(crate) fn inside(at: &Range<usize>) -> Range<usize> {
    let piece = listed().iter().find(|piece| piece.touches(at) && piece.is_ours());
    piece.map_or(0..0, |piece| at.start.max(piece.at.start)..at.end.min(piece.at.end))
}

/// Excludes pieces with any of the addresses `at` from far memory, unless they are far already: the program is about to
/// map something else there, or to lock them.
pub(crate) fn leave_near(at: &Range<usize>) {
    if inside(at).is_empty() {
        return;
    }
    let _inside = Inside::enter();
    let _lock = near_mappings::lock();
    for piece in listed().iter().filter(|piece| piece.touches(at) && piece.is_near()) {
        piece.state.store(LEFT_NEAR, Ordering::Relaxed); // Relaxed: under the lock
    }
}

/// Excludes pieces with any of the addresses `at` from far memory if the program gives an advice by which their pages
/// could vanish, or be inherited in another way.
pub(crate) fn advised(at: &Range<usize>, advice: c_int) {
    let concerns_speed = matches!(
        advice,
        libc::MADV_NORMAL
            | libc::MADV_RANDOM
            | libc::MADV_SEQUENTIAL
            | libc::MADV_WILLNEED
            | libc::MADV_HUGEPAGE
            | libc::MADV_NOHUGEPAGE
            | libc::MADV_DONTDUMP
            | libc::MADV_DODUMP
    );
    if !concerns_speed {
        leave_near(at);
    }
}

/// Returns the number of resident bytes that become far at the change-over; 0 before Linux 6.7, whose kernel cannot
/// tell. For a service thread, whose descriptor table is its own.
pub(crate) fn resident_bytes() -> u64 {
    let near = || listed().iter().filter(|piece| piece.is_near());
    if near().next().is_none() {
        return 0;
    }
    let Ok(pages) = Inspector::open(None) else { return 0 };
    let resident = |piece: &ListedPiece| match pages.ask(piece.at.start as u64, piece.at.len() as u64) {
        Seen::Exact(seen) => seen.resident,
        Seen::NotPerAddress => 0,
    };
    near().map(resident).sum()
}

/// Populates the pages `at` of a piece, so that the kernel meets none without contents.
pub(crate) fn populate(at: &Range<usize>) {
    let inside = inside(at);
    if !inside.is_empty() {
        let start = core::ptr::with_exposed_provenance_mut(inside.start);
        // SAFETY: populating changes no contents. A refusal is not an error here: a page that is inaccessible to the
        // kernel stays so.
        let _ = unsafe { largesse_pages::raw_madvise(start, inside.len(), libc::MADV_POPULATE_WRITE) };
    }
}

/// Returns the pieces that become far now: those that are near, and private memory without a file. The others never
/// become far. The caller holds the lock of `near_mappings.rs`.
pub(crate) fn for_change_over() -> Vec<Range<usize>> {
    let near = || listed().iter().filter(|piece| piece.is_near());
    if near().next().is_none() {
        return Vec::new();
    }
    let maps = std::fs::read_to_string("/proc/thread-self/maps").unwrap_or_default();
    near().filter(|piece| !is_anonymous(&maps, &piece.at)).for_each(|piece| {
        piece.state.store(LEFT_NEAR, Ordering::Relaxed); // Relaxed: under the lock
    });
    near().map(|piece| piece.at.clone()).collect()
}

/// Notes that the pieces for which `is_far` are far memory now, and the others that were to become far never will. The
/// caller holds the lock of `near_mappings.rs`.
pub(crate) fn are_far(is_far: impl Fn(&Range<usize>) -> bool) {
    for piece in listed().iter().filter(|piece| piece.is_near()) {
        let state = if is_far(&piece.at) { FAR } else { LEFT_NEAR };
        piece.state.store(state, Ordering::Relaxed); // Relaxed: under the lock
    }
}

/// Returns whether all of the addresses `at` are private memory without a file, by the text of `/proc/PID/maps`.
fn is_anonymous(maps: &str, at: &Range<usize>) -> bool {
    debug_assert!(at.start.is_multiple_of(base_page()), "pieces are whole pages");
    let mut reached = at.start;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some((start, end)) = words.next().and_then(|word| word.split_once('-')) else { return false };
        let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        let mapping = number(start)..number(end);
        if mapping.end <= reached {
            continue;
        }
        let is_private = words.next().is_some_and(|permissions| permissions.ends_with('p'));
        // The offset and the device precede the inode.
        let has_no_file = words.nth(2) == Some("0");
        if mapping.start > reached || !is_private || !has_no_file {
            return false;
        }
        reached = mapping.end;
        if reached >= at.end {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_files_and_gaps_are_not_anonymous() {
        const MAPS: &str = "1000-3000 rw-p 00000000 08:01 7 /a file\n3000-5000 rw-p 00000000 00:00 0 \n\
            5000-6000 r--p 00000000 00:00 0 [anon: b]\n7000-8000 rw-p 00000000 00:00 0 [heap]\n\
            8000-9000 rw-s 00000000 00:01 5 /dev/zero (deleted)\n";
        for (at, want) in [
            (0x3000..0x5000, true),
            (0x4000..0x6000, true),
            (0x2000..0x4000, false),
            (0x5000..0x8000, false),
            (0x7000..0x8000, true),
            (0x7000..0x9000, false),
            (0x9000..0xa000, false),
        ] {
            assert_eq!(is_anonymous(MAPS, &at), want, "{at:x?}");
        }
    }
}
