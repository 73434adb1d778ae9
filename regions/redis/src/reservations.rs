//! Which pages of each home (2 MiB of a store, which is one key) are reserved, and which are written.

use crate::slots::{SLOTS, slot};
use core::ops::Range;
use std::collections::BTreeMap;

pub(crate) const PAGE: usize = 4096;
const BYTES: u64 = PAGE as u64;
/// Number of pages of one home.
pub(crate) const PAGES: u16 = 512;
pub(crate) const HOME: u64 = PAGES as u64 * BYTES;

/// The random identifier of a store, which distinguishes its keys from those of all other stores.
pub(crate) type StoreId = u128;

/// A set of pages of one home, as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageSet([u64; 8]);

impl PageSet {
    pub(crate) fn range(range: Range<u16>) -> PageSet {
        let mut pages = PageSet::default();
        for page in range {
            pages.0[usize::from(page / 64)] |= 1 << (page % 64);
        }
        pages
    }

    fn zip(self, other: PageSet, bits: impl Fn(u64, u64) -> u64) -> PageSet {
        PageSet(core::array::from_fn(|word| bits(self.0[word], other.0[word])))
    }

    pub(crate) fn and(self, other: PageSet) -> PageSet {
        self.zip(other, |one, other| one & other)
    }

    fn or(self, other: PageSet) -> PageSet {
        self.zip(other, |one, other| one | other)
    }

    pub(crate) fn without(self, other: PageSet) -> PageSet {
        self.zip(other, |one, other| one & !other)
    }

    pub(crate) fn count(self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    pub(crate) fn is_empty(self) -> bool {
        self == PageSet::default()
    }

    pub(crate) fn contains(self, page: u16) -> bool {
        self.0[usize::from(page / 64)] >> (page % 64) & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u16> {
        (0..PAGES).filter(move |&page| self.contains(page))
    }
}

/// A range of pages within one home, with the key that holds the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HomePart {
    pub(crate) key: String,
    pub(crate) slot: u16,
    pub(crate) home: u64,
    pub(crate) pages: Range<u16>,
}

/// Divides the `len` bytes of a store from `at` on at the boundaries of homes.
pub(crate) fn parts(store: StoreId, at: u64, len: u64) -> impl Iterator<Item = HomePart> {
    assert!(at.is_multiple_of(BYTES) && len.is_multiple_of(BYTES), "the store keeps whole pages");
    let end = at + len;
    (at / HOME..end.div_ceil(HOME)).map(move |home| {
        let page = |byte: u64| u16::try_from((byte - home * HOME).min(HOME) / BYTES).unwrap_or(PAGES);
        let pages = page(at.max(home * HOME))..page(end);
        let key = key(store, home);
        HomePart { slot: slot(&key), key, home, pages }
    })
}

pub(crate) fn key(store: StoreId, home: u64) -> String {
    format!("largesse:{store:032x}:{home:x}")
}

#[derive(Debug)]
struct Home {
    slot: u16,
    reserved: PageSet,
    /// Pages that were sent to the server. The server may or may not have them.
    written: PageSet,
}

/// The homes of all stores of this process that have reserved or written pages.
#[derive(Debug)]
pub(crate) struct Reservations {
    homes: BTreeMap<(StoreId, u64), Home>,
    /// Number of pages that are reserved and not written, by hash slot.
    outstanding: Vec<u32>,
}

impl Default for Reservations {
    fn default() -> Reservations {
        Reservations { homes: BTreeMap::new(), outstanding: vec![0; usize::from(SLOTS)] }
    }
}

impl Reservations {
    /// Applies `change` to the home of `part` and to the pages of `part`. Corrects the number of outstanding pages of
    /// the hash slot. Returns the result of `change`.
    fn change(
        &mut self,
        store: StoreId,
        part: &HomePart,
        change: impl FnOnce(&mut Home, PageSet) -> PageSet,
    ) -> PageSet {
        let new = || Home { slot: part.slot, reserved: PageSet::default(), written: PageSet::default() };
        let home = self.homes.entry((store, part.home)).or_insert_with(new);
        let sum = &mut self.outstanding[usize::from(part.slot)];
        *sum -= home.reserved.without(home.written).count();
        let changed = change(home, PageSet::range(part.pages.clone()));
        *sum += home.reserved.without(home.written).count();
        if home.reserved.is_empty() && home.written.is_empty() {
            self.homes.remove(&(store, part.home));
        }
        changed
    }

    /// Reserves the pages of `part`. Returns those that were not reserved before.
    pub(crate) fn reserve(&mut self, store: StoreId, part: &HomePart) -> PageSet {
        self.change(store, part, |home, pages| {
            let new = pages.without(home.reserved);
            home.reserved = home.reserved.or(pages);
            new
        })
    }

    /// Undoes the reservation of the pages `reserved`.
    pub(crate) fn cancel(&mut self, store: StoreId, part: &HomePart, reserved: PageSet) {
        self.change(store, part, |home, _| {
            home.reserved = home.reserved.without(reserved);
            reserved
        });
    }

    /// Records that the pages of `part` are about to be sent to the server.
    pub(crate) fn write(&mut self, store: StoreId, part: &HomePart) {
        self.change(store, part, |home, pages| {
            home.written = home.written.or(pages);
            pages
        });
    }

    /// Ends the reservation of the pages of `part`. Returns those that may be on the server and must be deleted.
    pub(crate) fn discard(&mut self, store: StoreId, part: &HomePart) -> PageSet {
        self.change(store, part, |home, pages| {
            let gone = home.written.and(pages);
            home.reserved = home.reserved.without(pages);
            home.written = home.written.without(pages);
            gone
        })
    }

    pub(crate) fn is_written(&self, store: StoreId, home: u64, page: u16) -> bool {
        self.homes.get(&(store, home)).is_some_and(|home| home.written.contains(page))
    }

    /// Removes a store. Returns those of its keys that may be on a server, each with its hash slot.
    pub(crate) fn remove(&mut self, store: StoreId) -> Vec<(String, u16)> {
        let keys = self.keys(Some(store));
        for (_, home) in self.homes.extract_if((store, 0)..=(store, u64::MAX), |_, _| true) {
            self.outstanding[usize::from(home.slot)] -= home.reserved.without(home.written).count();
        }
        keys
    }

    /// Returns the keys that may be on a server, each with its hash slot, of one store, or of all if `store` is `None`.
    pub(crate) fn keys(&self, store: Option<StoreId>) -> Vec<(String, u16)> {
        let range = store.unwrap_or(0)..=store.unwrap_or(StoreId::MAX);
        let homes = self.homes.range((*range.start(), 0)..=(*range.end(), u64::MAX));
        let there = homes.filter(|(_, home)| !home.written.is_empty());
        there.map(|(&(store, number), home)| (key(store, number), home.slot)).collect()
    }

    /// Returns the number of pages that are reserved and not written, in hash slots for which `of` returns true.
    pub(crate) fn outstanding(&self, of: impl Fn(u16) -> bool) -> u64 {
        let slots = (0..SLOTS).zip(&self.outstanding).filter(|(slot, pages)| **pages > 0 && of(*slot));
        slots.map(|(_, &pages)| u64::from(pages)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_divided_at_homes() {
        let cut: Vec<_> = parts(7, HOME - BYTES, 2 * BYTES + HOME).collect();
        let want = [(0, 511..512), (1, 0..512), (2, 0..1)];
        assert_eq!(cut.iter().map(|part| (part.home, part.pages.clone())).collect::<Vec<_>>(), want);
        assert_eq!(cut[1].key, "largesse:00000000000000000000000000000007:1");
        assert_eq!(parts(7, HOME, 0).count(), 0);
    }

    #[test]
    fn written_and_discarded_pages_are_not_outstanding() {
        let mut reservations = Reservations::default();
        let first = |pages| parts(1, 0, pages * BYTES).next().unwrap();
        assert_eq!(reservations.reserve(1, &first(10)).count(), 10);
        assert_eq!(reservations.reserve(1, &first(15)).count(), 5, "ten are reserved already");
        let outstanding = |reservations: &Reservations| reservations.outstanding(|_| true);
        assert_eq!(outstanding(&reservations), 15);
        reservations.write(1, &first(4));
        assert_eq!(
            (outstanding(&reservations), reservations.is_written(1, 0, 3), reservations.is_written(1, 0, 4)),
            (11, true, false)
        );
        assert_eq!(reservations.discard(1, &first(6)).iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(outstanding(&reservations), 9);
        let new = reservations.reserve(1, &first(15));
        reservations.cancel(1, &first(15), new);
        assert_eq!(outstanding(&reservations), 9);
    }

    #[test]
    fn keys_are_those_of_homes_with_written_pages() {
        let mut reservations = Reservations::default();
        for store in [1, 2] {
            for part in parts(store, 0, 3 * HOME) {
                reservations.reserve(store, &part);
                if part.home < 2 {
                    reservations.write(store, &part);
                }
            }
        }
        assert_eq!((reservations.keys(None).len(), reservations.keys(Some(2)).len()), (4, 2));
        assert_eq!(reservations.remove(1).len(), 2);
        assert_eq!((reservations.keys(None).len(), reservations.outstanding(|_| true)), (2, 512));
    }
}
