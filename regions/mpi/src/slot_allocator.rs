//! Which slots of the servers are taken.

use std::collections::BTreeSet;

/// A home for one stripe: its server, and where in that server's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot {
    /// Position among the servers; the rank is one more.
    pub(crate) server: u32,
    /// The how-manieth stripe of its memory.
    pub(crate) index: u32,
}

/// The longest row: a server is done with it long before anybody's patience ends.
const LONGEST: u32 = 128;

/// Neighbouring slots of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) first: Slot,
    pub(crate) count: u32,
}

impl Row {
    /// What would make it longer.
    const fn next(self) -> Slot {
        Slot { index: self.first.index + self.count, ..self.first }
    }
}

/// The slots of all servers. Stripes that follow each other are dealt to one server after the other.
#[derive(Debug)]
pub(crate) struct Ledger {
    servers: Vec<Server>,
    /// Whose turn it is.
    next: usize,
}

#[derive(Debug)]
struct Server {
    slots: u32,
    /// From here on no slot was ever taken.
    fresh: u32,
    /// The lowest is taken first: a server that has less memory than it said can give the low ones.
    given_back: BTreeSet<u32>,
}

impl Ledger {
    /// Servers that have room for so many stripes each.
    pub(crate) fn new(slots: impl Iterator<Item = u32>) -> Ledger {
        let servers = slots.map(|slots| Server { slots, fresh: 0, given_back: BTreeSet::new() }).collect();
        Ledger { servers, next: 0 }
    }

    /// So many slots, or none.
    pub(crate) fn take(&mut self, count: usize) -> Option<Vec<Slot>> {
        if self.servers.iter().map(Server::free).sum::<usize>() < count {
            return None;
        }
        let mut slots = Vec::with_capacity(count);
        while slots.len() < count {
            let server = self.next;
            self.next = (self.next + 1) % self.servers.len();
            if let Some(index) = self.servers[server].take() {
                slots.push(Slot { server: u32::try_from(server).ok()?, index });
            }
        }
        Some(slots)
    }

    /// They are free again.
    pub(crate) fn give_back(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.servers[slot.server as usize].given_back.insert(slot.index);
        }
    }
}

impl Server {
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

/// The slots as rows, so that one message speaks of many.
pub(crate) fn rows(mut slots: Vec<Slot>) -> Vec<Row> {
    slots.sort_unstable();
    let mut rows: Vec<Row> = Vec::new();
    for slot in &slots {
        match rows.last_mut() {
            Some(row) if row.count < LONGEST && row.next() == *slot => row.count += 1,
            _ => rows.push(Row { first: *slot, count: 1 }),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stripes_are_dealt_in_turns_until_a_server_is_full() {
        let mut ledger = Ledger::new([2, 3].into_iter());
        let servers: Vec<_> = ledger.take(5).unwrap().iter().map(|slot| slot.server).collect();
        assert_eq!(servers, [0, 1, 0, 1, 1]);
        assert_eq!(ledger.take(1), None);
    }

    #[test]
    fn neighbours_make_rows() {
        let slots = |at: &[(u32, u32)]| at.iter().map(|&(server, index)| Slot { server, index }).collect();
        let row = |server, index, count| Row { first: Slot { server, index }, count };
        let got = rows(slots(&[(1, 0), (0, 4), (0, 3), (0, 6), (1, 1)]));
        assert_eq!(got, [row(0, 3, 2), row(0, 6, 1), row(1, 0, 2)]);
        let long: Vec<_> = (0..LONGEST + 2).map(|index| (0, index)).collect();
        assert_eq!(rows(slots(&long)), [row(0, 0, LONGEST), row(0, LONGEST, 2)]);
    }

    proptest! {
        #[test]
        fn no_slot_is_taken_twice_and_none_is_lost(
            sizes in prop::collection::vec(0..6_u32, 1..4),
            steps in prop::collection::vec((any::<bool>(), 0..8_usize), 0..40),
        ) {
            let room: usize = sizes.iter().map(|&slots| slots as usize).sum();
            let mut ledger = Ledger::new(sizes.iter().copied());
            let mut taken = BTreeSet::new();
            for (take, count) in steps {
                if take {
                    let got = ledger.take(count);
                    prop_assert_eq!(got.is_some(), taken.len() + count <= room);
                    for slot in got.unwrap_or_default() {
                        prop_assert!(slot.index < sizes[slot.server as usize]);
                        prop_assert!(taken.insert(slot), "twice: {:?}", slot);
                    }
                } else {
                    let back: Vec<_> = taken.iter().copied().take(count).collect();
                    taken.retain(|slot| !back.contains(slot));
                    ledger.give_back(&back);
                }
            }
        }
    }
}
