//! Simulates far memory: three of four pages are not resident. If all slots can be read one by one, the collector must not
//! read those in pages that it is told are unchanged.

use super::memory;
use core::ops::Range;
use core::ptr::NonNull;
use largesse_arena::{Backing, FarBytes, NearMemory, Purged, SpanKind};
use largesse_pages::MapError;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

const PAGE: usize = 4 << 10;

/// The value of all words of unchanged pages during a collection, if traps are set. [`Tiny`](super::Tiny) panics when it
/// is asked whether this word is a reference.
pub(crate) const TRAP: u64 = 0x7a7a_7a7a_7a7a_7a7a;

#[derive(Default)]
struct Pages {
    /// The contents that each page in use had at the last call of `watch`.
    in_use: BTreeMap<usize, Vec<u8>>,
    /// The contents of pages that are filled with [`TRAP`].
    trapped: Vec<(usize, Vec<u8>)>,
    /// Number of calls of `watch`.
    round: usize,
}

/// Returns whether a page is resident in this round. Every page is in one of four rounds.
fn is_resident(page: usize, round: usize) -> bool {
    (page / 3 + round).is_multiple_of(4)
}

/// Near memory of which three quarters are declared not to be resident.
pub(crate) struct SimulatedFar {
    near: NearMemory,
    pages: Mutex<Pages>,
    /// Whether unchanged pages are filled with [`TRAP`] during a collection.
    traps: bool,
}

impl SimulatedFar {
    pub(crate) fn new(spans: usize, traps: bool) -> SimulatedFar {
        SimulatedFar { near: memory(spans), pages: Mutex::default(), traps }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap()
    }

    /// Returns the bytes of a page.
    ///
    /// # Safety
    /// The page is in use, and no other thread uses it during the borrow.
    #[expect(clippy::mut_from_ref, reason = "the world is stopped")]
    unsafe fn bytes(&self, page: usize) -> &mut [u8] {
        // SAFETY: within the range, and committed, as it is in use; the rest is the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.near.start().add(page * PAGE).as_ptr(), PAGE) }
    }
}

// SAFETY: as for near memory; the contents of trapped pages are restored before threads continue.
unsafe impl Backing for SimulatedFar {
    fn start(&self) -> NonNull<u8> {
        self.near.start()
    }
    fn spans(&self) -> usize {
        self.near.spans()
    }
    fn commit(&self, first: usize, spans: usize) -> Result<SpanKind, MapError> {
        self.near.commit(first, spans)
    }
    unsafe fn purge(&self, _: usize, _: usize, _: SpanKind) -> Purged {
        Purged::Refused
    }

    fn wanted(&self, offset: usize, len: usize, wanted: bool) {
        let mut pages = self.pages();
        for page in offset / PAGE..(offset + len) / PAGE {
            if wanted {
                pages.in_use.entry(page).or_default();
            } else {
                pages.in_use.remove(&page);
            }
        }
    }

    fn far_bytes(&self) -> FarBytes {
        FarBytes { stored: (self.pages().in_use.len() * PAGE * 3 / 4) as u64, read: 0 }
    }

    fn watch(&self, _: usize) {
        let mut pages = self.pages();
        for (page, contents) in std::mem::take(&mut pages.trapped) {
            // SAFETY: the page was in use when the trap was set, and the world is stopped.
            unsafe { self.bytes(page) }.copy_from_slice(&contents);
        }
        for (&page, watched) in &mut pages.in_use {
            // SAFETY: the page is in use, and the world is stopped.
            *watched = unsafe { self.bytes(page) }.to_vec();
        }
        pages.round += 1;
    }

    fn unchanged(&self, len: usize, found: &mut dyn FnMut(Range<usize>)) {
        let mut pages = self.pages();
        let pages = &mut *pages;
        for (&page, watched) in &pages.in_use {
            // SAFETY: the page is in use, and the world is stopped.
            let bytes = unsafe { self.bytes(page) };
            if is_resident(page, pages.round) || bytes != watched.as_slice() {
                continue;
            }
            assert!((page + 1) * PAGE <= len, "page {page} is in use beyond {len} bytes");
            found(page * PAGE..(page + 1) * PAGE);
            if self.traps {
                pages.trapped.push((page, bytes.to_vec()));
                bytes.chunks_exact_mut(8).for_each(|word| word.copy_from_slice(&TRAP.to_ne_bytes()));
            }
        }
    }
}
