//! Implements partial collections, which do not read most of the memory that is not resident.
//!
//! ```text
//!   full:     clear marks ─► trace from the roots ─────────────────────────────────────► sweep ─► watch
//!   partial:                 trace from the roots, and from old objects in changed memory ─► sweep ─► watch
//! ```
//! Marks are *sticky* (Demers et al. 1990): a partial collection keeps those of the collection before. A marked object is
//! *old*; it counts as reachable, and is not followed. At the end of a collection every reference in a marked object
//! leads to a marked object, so that only slots written to since then can lead to unmarked ones. A write barrier would
//! record these slots. Here the backing is the barrier: it knows memory that is not resident and has not changed since
//! it was last watched. The slots of old objects in all other memory are scanned.
//!
//! Objects that die after they were marked are *floating garbage*: they stay until the next full collection, and so do
//! the objects that they refer to.

use crate::blocks::{BLOCK, BlockNumber, BlockState, object_at};
use crate::heap_spans::HeapSpans;
use crate::language::{CUSTOM, Item, OLD};
use crate::{Language, Layout, Tracer};
use core::ptr::NonNull;
use largesse_arena::FarBytes;

/// Size in bytes of a part of a block: the unit in which memory is known to be unchanged.
const PART: usize = 4 << 10;
/// Number of parts of a block: there is a bit of a byte for each.
const PARTS: usize = BLOCK / PART;
const _: () = assert!(PARTS == u8::BITS as usize);

/// A collection can be partial if at least the bytes in use divided by this number are not resident. If fewer are, a
/// full collection takes little longer and leaves no floating garbage.
const WORTH: usize = 8;

/// Largest number of consecutive partial collections, so that finalizers and weak slots wait for a bounded time.
const MOST_PARTIAL: usize = 32;

/// How much of the heap a collection visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All reachable objects, so that all others are freed.
    Full,
    /// Objects that are not old, and old objects in memory that may have changed.
    Partial,
}

/// The state of the marks after a collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldMarks {
    /// Scope of the collection.
    scope: Scope,
    /// Number of bytes of marked objects.
    live: usize,
    /// Number of bytes of marked objects after the last full collection.
    live_after_full: usize,
    /// Number of partial collections since the last full one.
    partial: usize,
}

impl OldMarks {
    /// Returns the state after a collection that found `live` bytes alive. `before` is the state before it.
    pub(crate) fn after(scope: Scope, live: usize, before: Option<OldMarks>) -> OldMarks {
        match before.filter(|_| scope == Scope::Partial) {
            Some(before) => OldMarks { scope, live, partial: before.partial + 1, ..before },
            None => OldMarks { scope, live, live_after_full: live, partial: 0 },
        }
    }

    /// Returns whether the marks are exactly those of the objects that were reachable.
    pub(crate) fn are_exact(&self) -> bool {
        self.scope == Scope::Full
    }
}

impl Scope {
    /// Returns the scope of a collection that need not exceed `self`. `old` is the state of the marks, `None` if they
    /// are not those of a collection that was completed. `used` bytes of blocks are in use, and at least `floor` bytes
    /// are allocated between two collections.
    pub(crate) fn choose(self, old: Option<OldMarks>, far: FarBytes, used: usize, floor: usize) -> Scope {
        let is_worth = far.stored >= (used / WORTH).max(1) as u64;
        // All that is marked beyond the bytes of the last full collection may be floating garbage.
        let is_bounded = old.is_some_and(|old| {
            let more = old.live.saturating_sub(old.live_after_full);
            more <= floor.max(old.live_after_full / 2) && old.partial < MOST_PARTIAL
        });
        if self == Scope::Partial && is_worth && is_bounded { Scope::Partial } else { Scope::Full }
    }
}

/// The parts of blocks that are not resident and have not changed since the last collection.
#[derive(Debug, Default)]
pub(crate) struct Unchanged {
    /// For each block, a bit for each of its parts.
    parts: Vec<u8>,
}

impl Unchanged {
    /// Asks the backing of `spans` for all unchanged memory.
    pub(crate) fn of(spans: &HeapSpans) -> Unchanged {
        let mut parts = Vec::new();
        spans.unchanged(&mut |run| {
            // A part of which only some bytes are known to be unchanged may have changed.
            for part in run.start.div_ceil(PART)..run.end / PART {
                if part / PARTS >= parts.len() {
                    parts.resize(part / PARTS + 1, 0);
                }
                parts[part / PARTS] |= 1 << (part % PARTS);
            }
        });
        Unchanged { parts }
    }

    /// Returns whether a part may have changed; it is the one with the number `part` from the start of `block` on.
    fn may_have_changed(&self, block: BlockNumber, part: usize) -> bool {
        let part = block as usize * PARTS + part;
        self.parts.get(part / PARTS).is_none_or(|parts| parts & 1 << (part % PARTS) == 0)
    }
}

impl<L: Language> Tracer<'_, L> {
    /// Adds the slots of old objects that may have changed to those that will be scanned. `in_use` are the blocks of
    /// cells, and the first block of each large object.
    pub(crate) fn add_changed(&mut self, in_use: &[BlockNumber], unchanged: &Unchanged) {
        for &block in in_use {
            let state = self.blocks.get(block);
            if state.layout() == Layout::Opaque || !self.blocks.has_marks(block) {
                continue;
            }
            if state.is_large() {
                self.add_large(block, state, unchanged);
                continue;
            }
            let start = self.blocks.address(block);
            let changed = (0..PARTS).filter(|&part| unchanged.may_have_changed(block, part));
            self.stack.extend(changed.map(|part| Item { at: object_at(start + part * PART), words: OLD }));
        }
    }

    /// Adds the slots of an old large object that may have changed. An object whose slots only the language knows, and
    /// a weak one, are added as a whole.
    fn add_large(&mut self, block: BlockNumber, state: BlockState, unchanged: &Unchanged) {
        let (start, words) = (self.blocks.address(block), state.words());
        let parts = (words * 8).div_ceil(PART);
        let mut changed = (0..parts).filter(|&part| unchanged.may_have_changed(block, part));
        match state.layout() {
            Layout::Slots => self.stack.extend(changed.map(|part| {
                let from = part * (PART / 8);
                Item { at: object_at(start + part * PART), words: (words - from).min(PART / 8) }
            })),
            Layout::Custom if changed.next().is_some() => {
                self.stack.push(Item { at: object_at(start), words: CUSTOM });
            }
            Layout::Weak if changed.next().is_some() => self.weak.push(start),
            _ => {}
        }
    }

    /// Scans the slots in a part of a block of cells that belong to marked objects. Cells of objects whose slots only
    /// the language knows, and of weak ones, are scanned as a whole.
    pub(crate) fn scan_old<const MODE: u8>(&mut self, part: NonNull<u64>) {
        let blocks = self.blocks;
        let Some(offset) = blocks.offset(part.as_ptr().addr()) else { return };
        let (block, state, from) = (offset.block(), blocks.at_offset(offset), offset.get() % BLOCK);
        let start = blocks.address(block);
        for cell in blocks.marked(block, from..from + PART) {
            let cell = cell.get() % BLOCK;
            match state.layout() {
                Layout::Slots => {
                    let (first, end) = (cell.max(from), (cell + state.words() * 8).min(from + PART));
                    self.scan::<MODE>(Item { at: object_at(start + first), words: (end - first) / 8 });
                }
                Layout::Custom => self.stack.push(Item { at: object_at(start + cell), words: CUSTOM }),
                Layout::Weak => self.weak.push(start + cell),
                Layout::Opaque => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn far(stored: usize) -> FarBytes {
        FarBytes { stored: stored as u64, read: 0 }
    }

    #[test]
    fn first_and_requested_collections_are_full() {
        assert_eq!(Scope::Partial.choose(None, far(MIB), MIB, 0), Scope::Full);
        let old = Some(OldMarks::after(Scope::Full, MIB, None));
        assert_eq!(Scope::Partial.choose(old, far(MIB), MIB, 0), Scope::Partial);
        assert_eq!(Scope::Full.choose(old, far(MIB), MIB, 0), Scope::Full);
    }

    #[test]
    fn resident_heap_is_collected_in_full() {
        let old = Some(OldMarks::after(Scope::Full, 0, None));
        for (stored, used, scope) in [
            (0, 0, Scope::Full),
            (0, MIB, Scope::Full),
            (MIB / 8 - 1, MIB, Scope::Full),
            (MIB / 8, MIB, Scope::Partial),
        ] {
            assert_eq!(Scope::Partial.choose(old, far(stored), used, 0), scope, "{stored} of {used}");
        }
    }

    #[test]
    fn floating_garbage_is_bounded() {
        let mut old = OldMarks::after(Scope::Full, 10 * MIB, None);
        for (live, scope) in [(12, Scope::Partial), (15, Scope::Partial), (16, Scope::Full)] {
            old = OldMarks::after(Scope::Partial, live * MIB, Some(old));
            assert_eq!(Scope::Partial.choose(Some(old), far(32 * MIB), 32 * MIB, MIB), scope, "{live} MiB");
        }
        for _ in 0..MOST_PARTIAL {
            old = OldMarks::after(Scope::Full, 16 * MIB, Some(old));
            old = OldMarks::after(Scope::Partial, 16 * MIB, Some(old));
        }
        assert_eq!(Scope::Partial.choose(Some(old), far(32 * MIB), 32 * MIB, 0), Scope::Partial);
        for _ in 1..MOST_PARTIAL {
            old = OldMarks::after(Scope::Partial, 16 * MIB, Some(old));
        }
        assert_eq!(Scope::Partial.choose(Some(old), far(32 * MIB), 32 * MIB, 0), Scope::Full);
        old = OldMarks::after(Scope::Full, 16 * MIB, Some(old));
        assert_eq!(Scope::Partial.choose(Some(old), far(32 * MIB), 32 * MIB, 0), Scope::Partial);
    }
}
