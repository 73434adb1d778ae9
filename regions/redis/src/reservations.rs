//! What was promised, and what was written where: by home and page.

use crate::slots::{SLOTS, slot};
use core::ops::Range;
use std::collections::BTreeMap;

pub(crate) const PAGE: usize = 4096;
const BYTES: u64 = PAGE as u64;
/// Pages of one home.
pub(crate) const PAGES: u16 = 512;
pub(crate) const HOME: u64 = PAGES as u64 * BYTES;

/// One space among all that ever were.
pub(crate) type SpaceId = u128;

/// Pages of one home, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pages([u64; 8]);

impl Pages {
    pub(crate) fn range(range: Range<u16>) -> Pages {
        let mut pages = Pages::default();
        for page in range {
            pages.0[usize::from(page / 64)] |= 1 << (page % 64);
        }
        pages
    }

    fn zip(self, other: Pages, bits: impl Fn(u64, u64) -> u64) -> Pages {
        Pages(core::array::from_fn(|word| bits(self.0[word], other.0[word])))
    }

    pub(crate) fn and(self, other: Pages) -> Pages {
        self.zip(other, |one, other| one & other)
    }

    fn or(self, other: Pages) -> Pages {
        self.zip(other, |one, other| one | other)
    }

    pub(crate) fn without(self, other: Pages) -> Pages {
        self.zip(other, |one, other| one & !other)
    }

    pub(crate) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn is_empty(self) -> bool {
        self == Pages::default()
    }

    pub(crate) fn contains(self, page: u16) -> bool {
        self.0[usize::from(page / 64)] >> (page % 64) & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u16> {
        (0..PAGES).filter(move |&page| self.contains(page))
    }
}

/// A part of a space within one home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) key: String,
    pub(crate) slot: u16,
    pub(crate) home: u64,
    pub(crate) pages: Range<u16>,
}

/// The homes that so many bytes at `at` lie in.
pub(crate) fn parts(space: SpaceId, at: u64, len: u64) -> impl Iterator<Item = Part> {
    assert!(at.is_multiple_of(BYTES) && len.is_multiple_of(BYTES), "the store keeps whole pages");
    let end = at + len;
    (at / HOME..end.div_ceil(HOME)).map(move |home| {
        let page = |byte: u64| u16::try_from((byte - home * HOME).min(HOME) / BYTES).unwrap_or(PAGES);
        let pages = page(at.max(home * HOME))..page(end);
        let key = key(space, home);
        Part { slot: slot(&key), key, home, pages }
    })
}

pub(crate) fn key(space: SpaceId, home: u64) -> String {
    format!("largesse:{space:032x}:{home:x}")
}

#[derive(Debug)]
struct Home {
    slot: u16,
    promised: Pages,
    /// Sent; it may be there.
    written: Pages,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    homes: BTreeMap<(SpaceId, u64), Home>,
    /// Pages that were promised and are not written, by slot.
    outstanding: Vec<u32>,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger { homes: BTreeMap::new(), outstanding: vec![0; usize::from(SLOTS)] }
    }
}

impl Ledger {
    /// Changes what is known of one home, and keeps the sum.
    fn change(
        &mut self,
        space: SpaceId,
        part: &Part,
        change: impl FnOnce(&mut Home, Pages) -> Pages,
    ) -> Pages {
        let new = || Home { slot: part.slot, promised: Pages::default(), written: Pages::default() };
        let home = self.homes.entry((space, part.home)).or_insert_with(new);
        let sum = &mut self.outstanding[usize::from(part.slot)];
        *sum -= home.promised.without(home.written).count();
        let changed = change(home, Pages::range(part.pages.clone()));
        *sum += home.promised.without(home.written).count();
        if home.promised.is_empty() && home.written.is_empty() {
            self.homes.remove(&(space, part.home));
        }
        changed
    }

    /// The pages that were not promised before.
    pub(crate) fn promise(&mut self, space: SpaceId, part: &Part) -> Pages {
        self.change(space, part, |home, pages| {
            let new = pages.without(home.promised);
            home.promised = home.promised.or(pages);
            new
        })
    }

    pub(crate) fn withdraw(&mut self, space: SpaceId, part: &Part, promised: Pages) {
        self.change(space, part, |home, _| {
            home.promised = home.promised.without(promised);
            promised
        });
    }

    pub(crate) fn write(&mut self, space: SpaceId, part: &Part) {
        self.change(space, part, |home, pages| {
            home.written = home.written.or(pages);
            pages
        });
    }

    /// The pages that may be there and must go.
    pub(crate) fn discard(&mut self, space: SpaceId, part: &Part) -> Pages {
        self.change(space, part, |home, pages| {
            let gone = home.written.and(pages);
            home.promised = home.promised.without(pages);
            home.written = home.written.without(pages);
            gone
        })
    }

    pub(crate) fn is_written(&self, space: SpaceId, home: u64, page: u16) -> bool {
        self.homes.get(&(space, home)).is_some_and(|home| home.written.contains(page))
    }

    /// Forgets a space; its keys.
    pub(crate) fn remove(&mut self, space: SpaceId) -> Vec<(String, u16)> {
        let keys = self.keys(Some(space));
        for (_, home) in self.homes.extract_if((space, 0)..=(space, u64::MAX), |_, _| true) {
            self.outstanding[usize::from(home.slot)] -= home.promised.without(home.written).count();
        }
        keys
    }

    /// The keys that may be there, of one space or of all.
    pub(crate) fn keys(&self, space: Option<SpaceId>) -> Vec<(String, u16)> {
        let range = space.unwrap_or(0)..=space.unwrap_or(SpaceId::MAX);
        let homes = self.homes.range((*range.start(), 0)..=(*range.end(), u64::MAX));
        let there = homes.filter(|(_, home)| !home.written.is_empty());
        there.map(|(&(space, number), home)| (key(space, number), home.slot)).collect()
    }

    /// Pages that are promised, not written, and in slots of which this is true.
    pub(crate) fn outstanding(&self, of: impl Fn(u16) -> bool) -> u64 {
        let slots = (0..SLOTS).zip(&self.outstanding).filter(|(slot, pages)| **pages > 0 && of(*slot));
        slots.map(|(_, &pages)| u64::from(pages)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_homes() {
        let cut: Vec<_> = parts(7, HOME - BYTES, 2 * BYTES + HOME).collect();
        let want = [(0, 511..512), (1, 0..512), (2, 0..1)];
        assert_eq!(cut.iter().map(|part| (part.home, part.pages.clone())).collect::<Vec<_>>(), want);
        assert_eq!(cut[1].key, "largesse:00000000000000000000000000000007:1");
        assert_eq!(parts(7, HOME, 0).count(), 0);
    }

    #[test]
    fn what_is_written_is_no_longer_outstanding_and_what_is_discarded_neither() {
        let mut ledger = Ledger::default();
        let first = |pages| parts(1, 0, pages * BYTES).next().unwrap();
        assert_eq!(ledger.promise(1, &first(10)).count(), 10);
        assert_eq!(ledger.promise(1, &first(15)).count(), 5, "ten are promised already");
        let outstanding = |ledger: &Ledger| ledger.outstanding(|_| true);
        assert_eq!(outstanding(&ledger), 15);
        ledger.write(1, &first(4));
        assert_eq!(
            (outstanding(&ledger), ledger.is_written(1, 0, 3), ledger.is_written(1, 0, 4)),
            (11, true, false)
        );
        assert_eq!(ledger.discard(1, &first(6)).iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(outstanding(&ledger), 9);
        let new = ledger.promise(1, &first(15));
        ledger.withdraw(1, &first(15), new);
        assert_eq!(outstanding(&ledger), 9);
    }

    #[test]
    fn keys_are_those_of_homes_that_hold_something() {
        let mut ledger = Ledger::default();
        for space in [1, 2] {
            for part in parts(space, 0, 3 * HOME) {
                ledger.promise(space, &part);
                if part.home < 2 {
                    ledger.write(space, &part);
                }
            }
        }
        assert_eq!((ledger.keys(None).len(), ledger.keys(Some(2)).len()), (4, 2));
        assert_eq!(ledger.remove(1).len(), 2);
        assert_eq!((ledger.keys(None).len(), ledger.outstanding(|_| true)), (2, 512));
    }
}
