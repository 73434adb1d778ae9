//! Keeps the report and its table of live blocks, which every allocation, resize and free updates.

use core::sync::atomic::{Ordering, fence};
use largesse_pages::{Table, Zeroed};
use largesse_report::{BlockKind, BlockRecord, Cause, Counters, HeapReport, Rest};

#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
struct RecordSlot(BlockRecord);

// SAFETY: zero bytes are an empty record.
unsafe impl Zeroed for RecordSlot {}

#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
struct ReportPage(HeapReport);

// SAFETY: zero bytes are a report without blocks.
unsafe impl Zeroed for ReportPage {}

/// The kinds of page that a block is on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    /// Kind of page at the start of the block.
    pub(crate) first: BlockKind,
    /// Number of spans, counted from the one in which the block starts, until the next kind begins, and that kind,
    /// which is [`BlockKind::Mixed`] if further kinds follow. `None` if the whole block is of one kind.
    pub(crate) then: Option<(usize, BlockKind)>,
}

impl Kinds {
    fn rest(self) -> u32 {
        const MOST: u32 = (1 << 24) - 1;
        let rest = self.then.map(|(spans, kind)| Rest {
            spans: u32::try_from(spans).unwrap_or(MOST).min(MOST),
            kind: kind as u32,
        });
        rest.map_or(0, Rest::pack)
    }
}

/// Holds the report and the records of live blocks. It finds a free slot for a record without a search.
#[derive(Debug)]
pub(crate) struct Records {
    page: Table<ReportPage>,
    slots: Table<RecordSlot>,
    /// Number of the first free slot plus one, or 0 if no slot below `slots` is free. The field `rest` of a free
    /// slot's record holds the next in the same form.
    free: u32,
}

impl Records {
    pub(crate) fn new(capacity: usize) -> Option<Records> {
        let slots: Table<RecordSlot> = Table::new(capacity)?;
        let mut page: Table<ReportPage> = Table::new(1)?;
        page[0].0.blocks = slots.as_ptr() as u64;
        Some(Records { page, slots, free: 0 })
    }

    pub(crate) fn report(&self) -> &HeapReport {
        &self.page[0].0
    }

    pub(crate) fn report_mut(&mut self) -> &mut HeapReport {
        &mut self.page[0].0
    }

    pub(crate) fn counters(&mut self) -> &mut Counters {
        &mut self.report_mut().counters
    }

    pub(crate) fn note(&mut self, cause: Cause) {
        self.note_many(cause, 1);
    }

    pub(crate) fn note_many(&mut self, cause: Cause, times: u64) {
        self.report_mut().not_granted[cause as usize] += times;
    }

    pub(crate) fn get(&self, slot: u32) -> BlockRecord {
        self.slots[slot as usize].0
    }

    /// Writes a record into a free slot and returns the slot's number, or `None` if the table is full.
    pub(crate) fn add(&mut self, address: u64, size: u64, kinds: Kinds) -> Option<u32> {
        let used = self.report().slots;
        let slot = match self.free.checked_sub(1) {
            Some(slot) => slot,
            None if (used as usize) < self.slots.len() => u32::try_from(used).ok()?,
            None => return None,
        };
        self.change(|records| {
            if records.free > 0 {
                records.free = records.get(slot).rest;
            } else {
                records.report_mut().slots += 1;
            }
            records.slots[slot as usize].0 =
                BlockRecord { address, size, kind: kinds.first as u32, rest: kinds.rest() };
        });
        Some(slot)
    }

    pub(crate) fn resize(&mut self, slot: u32, address: u64, size: u64, kinds: Kinds) {
        self.change(|records| {
            records.slots[slot as usize].0 =
                BlockRecord { address, size, kind: kinds.first as u32, rest: kinds.rest() };
        });
    }

    /// Changes the kind of page `from` to `to` in the records of all blocks, also where only a part of a block is of
    /// that kind.
    pub(crate) fn rekind(&mut self, from: BlockKind, to: BlockKind) {
        let new = |kind: u32| if kind == from as u32 { to as u32 } else { kind };
        self.change(|records| {
            let used = records.report().slots as usize;
            for slot in records.slots[..used].iter_mut().filter(|slot| slot.0.kind != BlockKind::Free as u32)
            {
                slot.0.kind = new(slot.0.kind);
                let rest = Rest::unpack(slot.0.rest).map(|rest| Rest { kind: new(rest.kind), ..rest });
                slot.0.rest = rest.filter(|rest| rest.kind != slot.0.kind).map_or(0, Rest::pack);
            }
        });
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        self.change(|records| {
            let next = records.free;
            records.slots[slot as usize].0 = BlockRecord { rest: next, ..BlockRecord::default() };
            records.free = slot + 1;
        });
    }

    /// Returns the records of live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = BlockRecord> {
        let used = self.report().slots as usize;
        self.slots[..used].iter().map(|slot| slot.0).filter(|record| record.kind != BlockKind::Free as u32)
    }

    /// Makes a change during which the generation is odd, so that readers in other processes notice it.
    fn change(&mut self, f: impl FnOnce(&mut Records)) {
        self.step();
        f(self);
        self.step();
    }

    fn step(&mut self) {
        // Both fences: a reader that finds the same even generation before and after its copy saw nothing of the writes
        // in between.
        fence(Ordering::SeqCst);
        let generation = &raw mut self.report_mut().generation;
        // SAFETY: the field is ours; volatile, because the reader is another process.
        unsafe { generation.write_volatile(generation.read_volatile() + 1) };
        fence(Ordering::SeqCst);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const ONE: Kinds = Kinds { first: BlockKind::Thp, then: None };

    #[test]
    fn demoted_part_joins_its_block() {
        let mut records = Records::new(1).unwrap();
        let kinds = Kinds { first: BlockKind::Hugetlb, then: Some((3, BlockKind::Thp)) };
        let slot = records.add(0x1000, 10, kinds).unwrap();
        assert_eq!(
            Rest::unpack(records.get(slot).rest),
            Some(Rest { spans: 3, kind: BlockKind::Thp as u32 })
        );
        records.rekind(BlockKind::Hugetlb, BlockKind::Thp);
        let record = records.get(slot);
        assert_eq!((record.kind, record.rest), (BlockKind::Thp as u32, 0));
    }

    #[test]
    fn slots_are_reused_at_even_generations() {
        let mut records = Records::new(3).unwrap();
        let a = records.add(0x1000, 10, ONE).unwrap();
        let b = records.add(0x2000, 20, ONE).unwrap();
        records.remove(a);
        assert_eq!(records.add(0x3000, 30, ONE), Some(a));
        assert_eq!(records.get(b).size, 20);
        assert!(records.add(0x4000, 40, ONE).is_some());
        assert_eq!(records.add(0x5000, 50, ONE), None, "the full table accepted a record");
        assert_eq!(records.iter().count(), 3);
        assert_eq!(records.report().generation % 2, 0);
        assert_eq!(records.report().slots, 3);
    }
}
