//! The transfers that one thread has in flight, each with the data that its end needs.

use core::ops::Range;
use largesse_policy::ServiceTime;
use largesse_store::{Completion, Direction, StoreError, Transfer, TransferQueue};
use std::time::{Duration, Instant};

/// The transfers that one thread has in flight in a `TransferQueue`: allocates the queue's memory to them, and keeps a
/// `T` for each until it ends.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    queue: Box<dyn TransferQueue>,
    memory: QueueMemory,
    /// The transfers in flight, each at the index that is its identifier.
    started: Vec<Option<Started<T>>>,
    service: ServiceTime,
}

#[derive(Debug)]
struct Started<T> {
    of: T,
    memory: Range<usize>,
    began: Instant,
}

/// A transfer that has ended. The caller [frees](InFlight::give_back) its memory.
#[derive(Debug)]
pub(crate) struct EndedTransfer<T> {
    pub(crate) of: T,
    pub(crate) memory: Range<usize>,
    pub(crate) result: Result<(), StoreError>,
    /// When the thread noticed the end.
    pub(crate) ended: Instant,
    /// Time from the start to the end of the transfer.
    pub(crate) latency: Duration,
    /// Time for which the store worked on the transfer (see [`ServiceTime`]).
    pub(crate) service: Duration,
}

impl<T> InFlight<T> {
    /// Makes an empty list for a queue with `bytes` bytes of memory.
    pub(crate) fn new(queue: Box<dyn TransferQueue>, bytes: usize) -> InFlight<T> {
        let depth = queue.depth();
        let started = (0..depth).map(|_| None).collect();
        InFlight { queue, memory: QueueMemory::new(bytes, depth), started, service: ServiceTime::default() }
    }

    /// Returns the queue in which the transfers are in flight.
    pub(crate) fn queue(&self) -> &dyn TransferQueue {
        &*self.queue
    }

    /// Returns the number of transfers that were started and that [`reap`](InFlight::reap) has not returned yet.
    pub(crate) fn len(&self) -> usize {
        self.queue.in_flight()
    }

    /// Returns the `T` of each transfer in flight.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.started.iter_mut().flatten().map(|started| &mut started.of)
    }

    /// Returns the number of transfers that can be started before one ends.
    pub(crate) fn free(&self) -> usize {
        self.queue.depth() - self.queue.in_flight()
    }

    /// Allocates memory of the queue for a transfer of `len` bytes. Returns `None` if too little is free, or as many
    /// transfers are in flight as the queue allows.
    pub(crate) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        if self.free() == 0 { None } else { self.memory.take(len) }
    }

    /// Returns the bytes of memory that [`take`](InFlight::take) allocated.
    ///
    /// # Safety
    ///
    /// No transfer of this memory is in flight.
    pub(crate) unsafe fn bytes(&mut self, memory: &Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise, and each part of the memory was taken by one transfer only.
        unsafe { self.queue.memory(memory.clone()) }
    }

    /// Starts a transfer between the queue's `memory`, which [`take`](InFlight::take) allocated, and the store's bytes
    /// from `at` on. Keeps `of` until it ends.
    pub(crate) fn start(&mut self, direction: Direction, at: u64, memory: Range<usize>, of: T) {
        let free = self.started.iter().position(Option::is_none);
        let id = free.unwrap_or_else(|| unreachable!("memory is only taken below the depth"));
        self.queue.start(Transfer { id, direction, at, memory: memory.clone() });
        self.started[id] = Some(Started { of, memory, began: Instant::now() });
    }

    /// Submits all started transfers to the store.
    pub(crate) fn flush(&mut self) {
        self.queue.flush();
    }

    /// Returns the transfers that have ended. If none has, waits for the next end, for at most the time `wait`.
    pub(crate) fn reap(&mut self, wait: Duration) -> Vec<EndedTransfer<T>> {
        let (started, service, mut all) = (&mut self.started, &mut self.service, Vec::new());
        let mut noticed = None; // transfers that have ended by then end together
        self.queue.reap(wait, &mut |Completion { id, result }| {
            let Some(Started { of, memory, began }) = started[id].take() else { return };
            let ended = *noticed.get_or_insert_with(Instant::now);
            let (latency, service) = (ended.saturating_duration_since(began), service.ended(began, ended));
            all.push(EndedTransfer { of, memory, result, ended, latency, service });
        });
        all
    }

    /// Frees memory that [`take`](InFlight::take) allocated.
    pub(crate) fn give_back(&mut self, memory: &Range<usize>) {
        self.memory.give_back(memory);
    }
}

/// Allocates parts of a queue's memory, in bytes, by first fit: the parts are few, and each lives as long as a
/// transfer.
#[derive(Debug)]
struct QueueMemory {
    len: usize,
    /// The parts in use, sorted by position.
    used: Vec<Range<usize>>,
}

impl QueueMemory {
    /// Makes an allocator of `len` bytes, for at most `parts` parts at a time.
    fn new(len: usize, parts: usize) -> QueueMemory {
        QueueMemory { len, used: Vec::with_capacity(parts) }
    }

    /// Allocates `len` bytes, if a free part is long enough.
    fn take(&mut self, len: usize) -> Option<Range<usize>> {
        let mut start = 0;
        let mut place = self.used.len();
        for (index, used) in self.used.iter().enumerate() {
            if used.start - start >= len {
                place = index;
                break;
            }
            start = used.end;
        }
        let part = start..start + len;
        (part.end <= self.len).then(|| self.used.insert(place, part.clone()))?;
        Some(part)
    }

    /// Frees a part.
    fn give_back(&mut self, part: &Range<usize>) {
        self.used.retain(|used| used != part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_used_again() {
        let mut memory = QueueMemory::new(100, 8);
        let parts: Vec<_> = [40, 20, 40].into_iter().map(|len| memory.take(len).unwrap()).collect();
        assert_eq!(parts, [0..40, 40..60, 60..100]);
        assert_eq!(memory.take(1), None);
        memory.give_back(&parts[1]);
        assert_eq!(memory.take(21), None);
        assert_eq!(memory.take(15), Some(40..55));
        memory.give_back(&parts[0]);
        assert_eq!((memory.take(40), memory.take(5)), (Some(0..40), Some(55..60)));
    }
}
