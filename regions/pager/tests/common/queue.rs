//! Provides a queue that finds errors of ordering: its transfers over the test store end late and in random order.

use super::{PAGE, Random, TestStore};
use largesse_store::{Completion, Direction, Mechanism, PageStore, StoreError, Transfer, TransferQueue};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A queue over the test store that ends transfers late and in random order. It makes each transfer only when it ends,
/// so that a read that overtakes the write of the same page finds old bytes.
#[derive(Debug)]
pub(crate) struct ReorderingQueue {
    store: Arc<TestStore>,
    memory: Vec<u8>,
    depth: usize,
    in_flight: Vec<Transfer>,
    random: Random,
    /// Transfers end in one of this number of calls of `reap`, at random.
    calls: usize,
    /// No transfer ends while this is set.
    held: Arc<AtomicBool>,
}

impl ReorderingQueue {
    pub(crate) fn new(store: &Arc<TestStore>, pages: usize, depth: usize, seed: u64) -> ReorderingQueue {
        let memory = vec![0; pages * PAGE];
        ReorderingQueue {
            store: Arc::clone(store),
            memory,
            depth,
            in_flight: Vec::new(),
            random: Random(seed),
            calls: 1,
            held: Arc::default(),
        }
    }

    /// Makes transfers end in only one of `calls` calls of `reap`, at random.
    pub(crate) fn slow(self, calls: usize) -> ReorderingQueue {
        ReorderingQueue { calls, ..self }
    }

    /// Makes transfers end only while `held` is not set.
    pub(crate) fn held_while(self, held: &Arc<AtomicBool>) -> ReorderingQueue {
        ReorderingQueue { held: Arc::clone(held), ..self }
    }

    fn make(&mut self, transfer: &Transfer) -> Result<(), StoreError> {
        let memory = &mut self.memory[transfer.memory.clone()];
        match transfer.direction {
            Direction::Read => self.store.read(transfer.at, memory),
            Direction::Write => self.store.write(transfer.at, memory),
        }
    }
}

impl TransferQueue for ReorderingQueue {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Threads
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        let is_apart =
            |transfer: &Transfer| transfer.memory.end <= range.start || range.end <= transfer.memory.start;
        assert!(self.in_flight.iter().all(is_apart), "the memory {range:?} is used while a transfer has it");
        &mut self.memory[range]
    }

    fn start(&mut self, transfer: Transfer) {
        assert!(self.in_flight.len() < self.depth, "more transfers than the depth");
        let end = transfer.at + transfer.memory.len() as u64;
        let is_apart =
            |other: &Transfer| other.at + other.memory.len() as u64 <= transfer.at || end <= other.at;
        assert!(self.in_flight.iter().all(is_apart), "two transfers of one page are in flight: {transfer:?}");
        self.store.begin_transfer(transfer.at..end);
        self.in_flight.push(transfer);
        let reads = self.in_flight.iter().filter(|it| it.direction == Direction::Read).count();
        self.store.most_reads_in_flight.fetch_max(u32::try_from(reads).unwrap(), Ordering::Relaxed);
    }

    fn flush(&mut self) {}

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        if self.held.load(Ordering::Relaxed) || self.random.below(self.calls) > 0 {
            return std::thread::sleep(wait.min(Duration::from_micros(50)));
        }
        // Often nothing has ended yet; if the caller waits, one has.
        let least = usize::from(!wait.is_zero() && !self.in_flight.is_empty());
        let ended = self.random.below(3).max(least).min(self.in_flight.len());
        for _ in 0..ended {
            let place = self.random.below(self.in_flight.len());
            let transfer = self.in_flight.swap_remove(place);
            let result = self.make(&transfer);
            self.store.end_transfer(transfer.at);
            done(Completion { id: transfer.id, result });
        }
    }

    fn descriptor(&self) -> Option<core::ffi::c_int> {
        None
    }
}
