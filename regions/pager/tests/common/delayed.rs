//! A queue over the test store whose transfers all take the same time, and which measures how long they took.

use super::{PAGE, TestStore};
use largesse_store::{Completion, Direction, Mechanism, PageStore, Transfer, TransferQueue};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Ends each transfer `delay` after its start, or when it is reaped later.
#[derive(Debug)]
pub(crate) struct DelayedQueue {
    store: Arc<TestStore>,
    memory: Vec<u8>,
    depth: usize,
    delay: Duration,
    in_flight: Vec<(Instant, Transfer)>,
    /// The time of each transfer that has ended.
    pub(crate) times: Arc<Mutex<Vec<Duration>>>,
}

impl DelayedQueue {
    pub(crate) fn new(store: &Arc<TestStore>, pages: usize, depth: usize, delay: Duration) -> DelayedQueue {
        DelayedQueue {
            store: Arc::clone(store),
            memory: vec![0; pages * PAGE],
            depth,
            delay,
            in_flight: Vec::new(),
            times: Arc::default(),
        }
    }
}

impl TransferQueue for DelayedQueue {
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
        &mut self.memory[range]
    }

    fn start(&mut self, transfer: Transfer) {
        self.in_flight.push((Instant::now(), transfer));
    }

    fn flush(&mut self) {}

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        let Some(&(first, _)) = self.in_flight.first() else { return };
        std::thread::sleep((first + self.delay).saturating_duration_since(Instant::now()).min(wait));
        let now = Instant::now();
        let ended = self.in_flight.partition_point(|(began, _)| *began + self.delay <= now);
        for (began, transfer) in self.in_flight.drain(..ended) {
            let memory = &mut self.memory[transfer.memory.clone()];
            let result = match transfer.direction {
                Direction::Read => self.store.read(transfer.at, memory),
                Direction::Write => self.store.write(transfer.at, memory),
            };
            self.times.lock().unwrap().push(now - began);
            done(Completion { id: transfer.id, result });
        }
    }

    fn descriptor(&self) -> Option<core::ffi::c_int> {
        None
    }
}
