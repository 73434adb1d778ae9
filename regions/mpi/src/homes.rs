//! Records the home of each stripe (2 MiB) of a store: the server, and the position in its memory, that hold the
//! stripe.

use crate::slot_allocator::StripeSlot;
use core::ops::Range;
use largesse_pages::SPAN;
use largesse_store::StoreError;
use std::collections::HashMap;

/// Size in bytes of a stripe, which one server holds. It is the largest transfer unit, so that no unit has two homes.
pub(crate) const STRIPE: u64 = SPAN as u64;
/// Size in bytes of the smallest page of any machine, which can be reserved and discarded alone.
const PAGE: u64 = 4096;
const WORDS: usize = (STRIPE / PAGE) as usize / 64;

/// The homes of the stripes of which any page is reserved. The home of such a stripe does not change.
#[derive(Debug, Default)]
pub(crate) struct Homes(HashMap<u64, StripeHome>);

#[derive(Debug)]
struct StripeHome {
    slot: StripeSlot,
    /// Bit set of the reserved pages of the stripe.
    wanted: [u64; WORDS],
}

/// The part of a transfer that lies in one stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StripePart {
    pub(crate) stripe: u64,
    /// Offset in the stripe of the part's first byte.
    pub(crate) at: u64,
    /// Range of the transfer's bytes.
    pub(crate) bytes: Range<usize>,
}

/// Splits the `len` bytes of a store from `at` on into one part per stripe.
pub(crate) fn parts(at: u64, len: u64) -> impl Iterator<Item = StripePart> {
    let end = at.saturating_add(len);
    let stripes = if len == 0 { 0..0 } else { at / STRIPE..end.div_ceil(STRIPE) };
    stripes.map(move |stripe| {
        let from = at.max(stripe * STRIPE);
        let to = end.min((stripe + 1) * STRIPE);
        let byte = |it: u64| usize::try_from(it - at).unwrap_or(usize::MAX);
        StripePart { stripe, at: from % STRIPE, bytes: byte(from)..byte(to) }
    })
}

impl Homes {
    /// Returns the home of a stripe; `None` if no page of it is reserved.
    pub(crate) fn find(&self, stripe: u64) -> Option<StripeSlot> {
        self.0.get(&stripe).map(|home| home.slot)
    }

    /// Returns the home of a stripe; an error if no page of the stripe is reserved.
    pub(crate) fn home(&self, stripe: u64) -> Result<StripeSlot, StoreError> {
        let unreserved = || StoreError::Lost(format!("nothing of stripe {stripe} was reserved"));
        self.find(stripe).ok_or_else(unreserved)
    }

    /// Returns the stripes that contain any of the `len` bytes from `at` on and have no home yet.
    pub(crate) fn homeless(&self, at: u64, len: u64) -> Vec<u64> {
        parts(at, len).map(|part| part.stripe).filter(|stripe| !self.0.contains_key(stripe)).collect()
    }

    /// Assigns a home to a stripe of which no page is reserved yet.
    pub(crate) fn settle(&mut self, stripe: u64, slot: StripeSlot) {
        self.0.insert(stripe, StripeHome { slot, wanted: [0; WORDS] });
    }

    /// Records that the `len` bytes from `at` on are reserved. Their stripes must have homes.
    pub(crate) fn want(&mut self, at: u64, len: u64) {
        for part in parts(at, len) {
            if let Some(home) = self.0.get_mut(&part.stripe) {
                pages(&part).for_each(|page| home.wanted[page / 64] |= 1 << (page % 64));
            }
        }
    }

    /// Records that the `len` bytes from `at` on are no longer reserved. Returns the slots of the stripes of which no
    /// page is reserved any more.
    pub(crate) fn give_up(&mut self, at: u64, len: u64) -> Vec<StripeSlot> {
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

    /// Removes the homes of all stripes, and returns the slots that were their homes.
    pub(crate) fn clear(&mut self) -> Vec<StripeSlot> {
        self.0.drain().map(|(_, home)| home.slot).collect()
    }
}

/// Returns the pages of its stripe that contain bytes of a part.
fn pages(part: &StripePart) -> Range<usize> {
    let page = |at: u64| usize::try_from(at / PAGE).unwrap_or(usize::MAX);
    page(part.at)..page((part.at + part.bytes.len() as u64).next_multiple_of(PAGE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn transfers_are_split_by_stripe() {
        let part = |stripe, at, bytes| StripePart { stripe, at, bytes };
        assert_eq!(parts(0, 0).count(), 0);
        let got: Vec<_> = parts(STRIPE - 4096, 8192).collect();
        assert_eq!(got, [part(0, STRIPE - 4096, 0..4096), part(1, 0, 4096..8192)]);
        assert_eq!(parts(STRIPE, STRIPE).collect::<Vec<_>>(), [part(1, 0, 0..2 << 20)]);
    }

    proptest! {
        #[test]
        fn reserved_pages_keep_their_home(
            steps in prop::collection::vec((any::<bool>(), 0..2000_u64, 1..1200_u64), 0..30),
        ) {
            let (mut homes, mut pages, mut next) = (Homes::default(), BTreeSet::new(), 0);
            for (want, first, count) in steps {
                let (at, len) = (first * PAGE, count * PAGE);
                let before: BTreeSet<_> = pages.iter().map(|page| page * PAGE / STRIPE).collect();
                if want {
                    for stripe in homes.homeless(at, len) {
                        homes.settle(stripe, StripeSlot { server: 0, index: next });
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
