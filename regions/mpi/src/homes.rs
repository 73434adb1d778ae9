//! Where a store's stripes have their home.

use crate::slot_allocator::Slot;
use core::ops::Range;
use largesse_pages::SPAN;
use std::collections::HashMap;

/// What is dealt to one server in one piece: the largest set of pages, so that no set has two homes.
pub(crate) const STRIPE: u64 = SPAN as u64;
/// The smallest page of any machine: what may be wanted and given up by itself.
const PAGE: u64 = 4096;
const WORDS: usize = (STRIPE / PAGE) as usize / 64;

/// The homes of those stripes of which anything is reserved. A home never changes.
#[derive(Debug, Default)]
pub(crate) struct Homes(HashMap<u64, Home>);

#[derive(Debug)]
struct Home {
    slot: Slot,
    /// A bit for each page that is reserved.
    wanted: [u64; WORDS],
}

/// A part of a transfer that concerns one stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) stripe: u64,
    /// Where in the stripe.
    pub(crate) at: u64,
    /// Which bytes of the transfer.
    pub(crate) bytes: Range<usize>,
}

/// The parts of `len` bytes at `at`.
pub(crate) fn parts(at: u64, len: u64) -> impl Iterator<Item = Part> {
    let end = at.saturating_add(len);
    let stripes = if len == 0 { 0..0 } else { at / STRIPE..end.div_ceil(STRIPE) };
    stripes.map(move |stripe| {
        let from = at.max(stripe * STRIPE);
        let to = end.min((stripe + 1) * STRIPE);
        let byte = |it: u64| usize::try_from(it - at).unwrap_or(usize::MAX);
        Part { stripe, at: from % STRIPE, bytes: byte(from)..byte(to) }
    })
}

impl Homes {
    /// The home of a stripe of which anything is reserved.
    pub(crate) fn find(&self, stripe: u64) -> Option<Slot> {
        self.0.get(&stripe).map(|home| home.slot)
    }

    /// The stripes of this range that have no home yet.
    pub(crate) fn homeless(&self, at: u64, len: u64) -> Vec<u64> {
        parts(at, len).map(|part| part.stripe).filter(|stripe| !self.0.contains_key(stripe)).collect()
    }

    /// A stripe moves in.
    pub(crate) fn settle(&mut self, stripe: u64, slot: Slot) {
        self.0.insert(stripe, Home { slot, wanted: [0; WORDS] });
    }

    /// The bytes are reserved; their stripes have homes.
    pub(crate) fn want(&mut self, at: u64, len: u64) {
        for part in parts(at, len) {
            if let Some(home) = self.0.get_mut(&part.stripe) {
                pages(&part).for_each(|page| home.wanted[page / 64] |= 1 << (page % 64));
            }
        }
    }

    /// Nobody wants the bytes any more. Returns the homes in which nothing else was wanted.
    pub(crate) fn give_up(&mut self, at: u64, len: u64) -> Vec<Slot> {
        let mut empty = Vec::new();
        for part in parts(at, len) {
            let Some(home) = self.0.get_mut(&part.stripe) else { continue };
            pages(&part).for_each(|page| home.wanted[page / 64] &= !(1 << (page % 64)));
            if home.wanted == [0; WORDS] {
                empty.extend(self.0.remove(&part.stripe).map(|home| home.slot));
            }
        }
        empty
    }

    /// Everybody moves out.
    pub(crate) fn clear(&mut self) -> Vec<Slot> {
        self.0.drain().map(|(_, home)| home.slot).collect()
    }
}

/// The pages of a stripe that a part touches.
fn pages(part: &Part) -> Range<usize> {
    let page = |at: u64| usize::try_from(at / PAGE).unwrap_or(usize::MAX);
    page(part.at)..page((part.at + part.bytes.len() as u64).next_multiple_of(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_transfer_falls_into_the_parts_of_its_stripes() {
        let part = |stripe, at, bytes| Part { stripe, at, bytes };
        assert_eq!(parts(0, 0).count(), 0);
        let got: Vec<_> = parts(STRIPE - 4096, 8192).collect();
        assert_eq!(got, [part(0, STRIPE - 4096, 0..4096), part(1, 0, 4096..8192)]);
        assert_eq!(parts(STRIPE, STRIPE).collect::<Vec<_>>(), [part(1, 0, 0..2 << 20)]);
    }

    proptest! {
        #[test]
        fn a_stripe_has_a_home_as_long_as_any_of_its_pages_is_wanted(
            steps in prop::collection::vec((any::<bool>(), 0..2000_u64, 1..1200_u64), 0..30),
        ) {
            let (mut homes, mut pages, mut next) = (Homes::default(), BTreeSet::new(), 0);
            for (want, first, count) in steps {
                let (at, len) = (first * PAGE, count * PAGE);
                let before: BTreeSet<_> = pages.iter().map(|page| page * PAGE / STRIPE).collect();
                if want {
                    for stripe in homes.homeless(at, len) {
                        homes.settle(stripe, Slot { server: 0, index: next });
                        next += 1;
                    }
                    homes.want(at, len);
                    pages.extend(first..first + count);
                } else {
                    let moved_out = homes.give_up(at, len).len();
                    pages.retain(|page| !(first..first + count).contains(page));
                    let left: BTreeSet<_> = pages.iter().map(|page| page * PAGE / STRIPE).collect();
                    prop_assert_eq!(moved_out, before.len() - left.len());
                }
                for stripe in 0..8 {
                    let wanted = pages.iter().any(|page| page * PAGE / STRIPE == stripe);
                    prop_assert_eq!(homes.find(stripe).is_some(), wanted);
                }
            }
        }
    }
}
