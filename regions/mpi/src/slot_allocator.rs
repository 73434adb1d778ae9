//! Allocates slots of 2 MiB, the homes of stripes, in the memory of the servers.

use std::collections::BTreeSet;

/// A slot in the memory of a server, which is the home of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StripeSlot {
    /// Index of the server; its rank is one more.
    pub(crate) server: u32,
    /// Index of the slot in the server's memory.
    pub(crate) index: u32,
}

/// Largest number of slots in a run, so that a server commits them long before rank 0 gives it up.
const LONGEST: u32 = 128;

/// Neighbouring slots of one server, for which one message is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotRun {
    pub(crate) first: StripeSlot,
    pub(crate) count: u32,
}

impl SlotRun {
    /// Returns the slot that follows the run.
    const fn next(self) -> StripeSlot {
        StripeSlot { index: self.first.index + self.count, ..self.first }
    }
}

/// The free slots of all servers. Consecutive stripes get slots of different servers, in turn.
#[derive(Debug)]
pub(crate) struct SlotAllocator {
    servers: Vec<ServerSlots>,
    /// Index of the server from which the next slot is taken.
    next: usize,
}

#[derive(Debug)]
struct ServerSlots {
    slots: u32,
    /// Index of the first slot such that neither it nor any after it was ever taken.
    fresh: u32,
    /// Indices of freed slots. The lowest is taken first, because a server that has less memory than it announced fails
    /// to commit the high ones.
    given_back: BTreeSet<u32>,
}

impl SlotAllocator {
    /// Makes an allocator for servers with the given numbers of slots, all of them free.
    pub(crate) fn new(slots: impl Iterator<Item = u32>) -> SlotAllocator {
        let servers =
            slots.map(|slots| ServerSlots { slots, fresh: 0, given_back: BTreeSet::new() }).collect();
        SlotAllocator { servers, next: 0 }
    }

    /// Takes `count` slots; returns `None` if fewer are free.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<StripeSlot>> {
        if self.servers.iter().map(ServerSlots::free).sum::<usize>() < count {
            return None;
        }
        let mut slots = Vec::with_capacity(count);
        while slots.len() < count {
            let server = self.next;
            self.next = (self.next + 1) % self.servers.len();
            if let Some(index) = self.servers[server].take() {
                slots.push(StripeSlot { server: u32::try_from(server).ok()?, index });
            }
        }
        Some(slots)
    }

    /// Frees slots.
    pub(crate) fn give_back(&mut self, slots: &[StripeSlot]) {
        for slot in slots {
            self.servers[slot.server as usize].given_back.insert(slot.index);
        }
    }
}

impl ServerSlots {
    fn free(&self) -> usize {
        (self.slots - self.fresh) as usize + self.given_back.len()
    }

    fn take(&mut self) -> Option<u32> {
        self.given_back.pop_first().or_else(|| {
            let index = self.fresh;
            (index < self.slots).then(|| {
                self.fresh += 1;
                index
            })
        })
    }
}

/// Sorts slots into runs, each of which one message can name.
pub(crate) fn runs(mut slots: Vec<StripeSlot>) -> Vec<SlotRun> {
    slots.sort_unstable();
    let mut runs: Vec<SlotRun> = Vec::new();
    for slot in &slots {
        match runs.last_mut() {
            Some(run) if run.count < LONGEST && run.next() == *slot => run.count += 1,
            _ => runs.push(SlotRun { first: *slot, count: 1 }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn slots_are_taken_round_robin() {
        let mut allocator = SlotAllocator::new([2, 3].into_iter());
        let servers: Vec<_> = allocator.take(5).unwrap().iter().map(|slot| slot.server).collect();
        assert_eq!(servers, [0, 1, 0, 1, 1]);
        assert_eq!(allocator.take(1), None);
    }

    #[test]
    fn neighbouring_slots_form_runs() {
        let slots =
            |at: &[(u32, u32)]| at.iter().map(|&(server, index)| StripeSlot { server, index }).collect();
        let run = |server, index, count| SlotRun { first: StripeSlot { server, index }, count };
        let got = runs(slots(&[(1, 0), (0, 4), (0, 3), (0, 6), (1, 1)]));
        assert_eq!(got, [run(0, 3, 2), run(0, 6, 1), run(1, 0, 2)]);
        let long: Vec<_> = (0..LONGEST + 2).map(|index| (0, index)).collect();
        assert_eq!(runs(slots(&long)), [run(0, 0, LONGEST), run(0, LONGEST, 2)]);
    }

    proptest! {
        #[test]
        fn each_slot_is_taken_once(
            sizes in prop::collection::vec(0..6_u32, 1..4),
            steps in prop::collection::vec((any::<bool>(), 0..8_usize), 0..40),
        ) {
            let capacity: usize = sizes.iter().map(|&slots| slots as usize).sum();
            let mut allocator = SlotAllocator::new(sizes.iter().copied());
            let mut taken = BTreeSet::new();
            for (take, count) in steps {
                if take {
                    let got = allocator.take(count);
                    prop_assert_eq!(got.is_some(), taken.len() + count <= capacity);
                    for slot in got.unwrap_or_default() {
                        prop_assert!(slot.index < sizes[slot.server as usize]);
                        prop_assert!(taken.insert(slot), "twice: {:?}", slot);
                    }
                } else {
                    let back: Vec<_> = taken.iter().copied().take(count).collect();
                    taken.retain(|slot| !back.contains(slot));
                    allocator.give_back(&back);
                }
            }
        }
    }
}
