//! The transfers that one thread has in flight, each with what is needed at its end.

use core::ops::Range;
use largesse_policy::ServiceTime;
use largesse_store::{Completion, Direction, StoreError, Transfer, TransferQueue};
use std::time::{Duration, Instant};

/// A queue, the use of its memory, and a `T` for each transfer in flight.
#[derive(Debug)]
pub(crate) struct InFlight<T> {
    queue: Box<dyn TransferQueue>,
    memory: QueueMemory,
    /// The transfers by their identifiers, which are indices.
    started: Vec<Option<Started<T>>>,
    service: ServiceTime,
}

#[derive(Debug)]
struct Started<T> {
    of: T,
    memory: Range<usize>,
    began: Instant,
}

/// A transfer that has ended. Its memory is [given back](InFlight::give_back) by the caller.
#[derive(Debug)]
pub(crate) struct EndedTransfer<T> {
    pub(crate) of: T,
    pub(crate) memory: Range<usize>,
    pub(crate) result: Result<(), StoreError>,
    /// When its end was noticed.
    pub(crate) ended: Instant,
    /// Time from its start to its end.
    pub(crate) latency: Duration,
    /// Time for which the store worked on it (see [`ServiceTime`]).
    pub(crate) service: Duration,
}

impl<T> InFlight<T> {
    /// Makes the list for a queue with `bytes` bytes of memory.
    pub(crate) fn new(queue: Box<dyn TransferQueue>, bytes: usize) -> InFlight<T> {
        let depth = queue.depth();
        let started = (0..depth).map(|_| None).collect();
        InFlight { queue, memory: QueueMemory::new(bytes, depth), started, service: ServiceTime::default() }
    }

    /// Returns the queue.
    pub(crate) fn queue(&self) -> &dyn TransferQueue {
        &*self.queue
    }

    /// Returns the number of transfers in flight.
    pub(crate) fn len(&self) -> usize {
        self.queue.in_flight()
    }

    /// Returns what belongs to each transfer in flight.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.started.iter_mut().flatten().map(|started| &mut started.of)
    }

    /// Returns the number of transfers that can be started before one ends.
    pub(crate) fn free(&self) -> usize {
        self.queue.depth() - self.queue.in_flight()
    }

    /// Takes memory for a transfer of `len` bytes; `None` if there is too little, or the depth is reached.
    pub(crate) fn take(&mut self, len: usize) -> Option<Range<usize>> {
        if self.free() == 0 { None } else { self.memory.take(len) }
    }

    /// Returns the bytes of memory that was taken.
    ///
    /// # Safety
    ///
    /// No transfer of this memory is in flight.
    pub(crate) unsafe fn bytes(&mut self, memory: &Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise, and each part of the memory was taken by one transfer only.
        unsafe { self.queue.memory(memory.clone()) }
    }

    /// Starts a transfer of memory that was taken.
    pub(crate) fn start(&mut self, direction: Direction, at: u64, memory: Range<usize>, of: T) {
        let free = self.started.iter().position(Option::is_none);
        let id = free.unwrap_or_else(|| unreachable!("memory is only taken below the depth"));
        self.queue.start(Transfer { id, direction, at, memory: memory.clone() });
        self.started[id] = Some(Started { of, memory, began: Instant::now() });
    }

    /// Passes all started transfers to the store.
    pub(crate) fn flush(&mut self) {
        self.queue.flush();
    }

    /// Returns the transfers that have ended. If none has, waits for the next one, at most for `wait`.
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

    /// Frees memory that was taken.
    pub(crate) fn give_back(&mut self, memory: &Range<usize>) {
        self.memory.give_back(memory);
    }
}

/// Allocates parts of a queue's memory, in bytes, by first fit: parts are few, and live as long as a transfer.
#[derive(Debug)]
struct QueueMemory {
    len: usize,
    /// The parts in use, by address.
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
