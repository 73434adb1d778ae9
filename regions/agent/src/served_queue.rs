//! The agent's side of a queue of transfers: threads make the transfers, each by queues of the stores.
//!
//! ```text
//!   started ──► thread that has the lead: takes some, passes the lead on ──► TransferQueue of the store ──► ended
//! ```
//! The thread that has the lead is idle, and sleeps until the program starts a transfer; the other idle threads wait
//! for the lead. So a transfer never waits for the end of another one while a thread is idle, and an idle agent wakes
//! one thread.

use crate::index_ring::{Head, NotPopped, Tail};
use crate::message::{Answer, READ, Request, WRITE};
use crate::transfer_slots::TransferSlots;
use largesse_store::{Direction, ProvidedStore, QueueBytes, StoreError, Transfer, TransferQueue};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Largest number of transfers that one thread has in flight. More of them would wait for each other on one connection
/// while another thread is idle.
const IN_FLIGHT: usize = 8;
/// Longest time between two checks for new transfers while others are in flight.
const LOOK: Duration = Duration::from_micros(50);

/// A store of one process, which the process's forked children may read as well.
pub(crate) type SharedStore = Arc<dyn ProvidedStore>;

/// The agent's ends of a queue's two rings: the reader's end of `started`, and the writer's end of `ended`.
#[derive(Debug, Default)]
pub(crate) struct ServedQueue {
    /// The reader's end of the ring of started transfers. The thread that holds its lock has the lead.
    started: Mutex<Head>,
    ended: Mutex<Tail>,
}

/// A store that one serving thread uses, and that thread's queue of the store.
struct OpenStore {
    number: u32,
    store: SharedStore,
    queue: Box<dyn TransferQueue>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServedQueue {
    /// Makes the queue's transfers in the calling thread until the queue is closed. `memory` returns the queue's
    /// memory, and `store` returns a store by its number.
    pub(crate) fn serve(
        &self,
        slots: &TransferSlots,
        memory: impl Fn() -> QueueBytes,
        store: impl Fn(u32) -> Result<SharedStore, StoreError>,
    ) {
        let (mut open, bytes): (Vec<OpenStore>, _) = (Vec::new(), memory().len());
        loop {
            let mut in_flight: usize = open.iter().map(|it| it.queue.in_flight()).sum();
            while in_flight < IN_FLIGHT {
                let slot = match self.take(slots, in_flight == 0) {
                    Ok(slot) => slot,
                    Err(NotPopped::Closed) if in_flight == 0 => return,
                    Err(_) => break,
                };
                // SAFETY: the program has passed the slot to the agent, and only this thread has taken it.
                let request = unsafe { slots.request(slot) };
                let started = store(request.store)
                    .and_then(|store| opened(&mut open, request.store, store, &memory))
                    .and_then(|queue| start(queue, slot, request, bytes));
                match started {
                    Ok(()) => in_flight += 1,
                    Err(error) => self.end(slots, slot, Err(error)),
                }
            }
            for OpenStore { queue, .. } in open.iter_mut().filter(|it| it.queue.in_flight() > 0) {
                queue.reap(LOOK, &mut |ended| self.end(slots, ended.id, ended.result));
            }
        }
    }

    /// Takes the next started slot. An idle thread waits for one. A thread that is not idle takes one only if no idle
    /// thread waits for it.
    fn take(&self, slots: &TransferSlots, idle: bool) -> Result<usize, NotPopped> {
        if idle {
            return slots.started.pop(&mut lock(&self.started), None);
        }
        let mut head = match self.started.try_lock() {
            Ok(head) => head,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(NotPopped::Empty),
        };
        slots.started.pop(&mut head, Some(Duration::ZERO))
    }

    fn end(&self, slots: &TransferSlots, slot: usize, result: Result<(), StoreError>) {
        // SAFETY: this thread has taken the slot, and gives it back below.
        unsafe { slots.set_answer(slot, Answer::to(result)) };
        let mut tail = lock(&self.ended);
        slots.ended.put(&mut tail, u32::try_from(slot).unwrap_or(u32::MAX));
        slots.ended.tell(&mut tail);
    }
}

/// Returns the calling thread's queue of the store with this number. It opens a new queue if the number belongs to
/// another store than before, as after a fork that failed.
fn opened(
    open: &mut Vec<OpenStore>,
    number: u32,
    store: SharedStore,
    memory: impl Fn() -> QueueBytes,
) -> Result<&mut dyn TransferQueue, StoreError> {
    open.retain(|it| it.number != number || Arc::ptr_eq(&it.store, &store));
    let known = open.iter().position(|it| it.number == number);
    let place = match known {
        Some(place) => place,
        None => {
            let queue = store.open_queue_over(memory(), IN_FLIGHT);
            let queue = queue.ok_or_else(|| StoreError::Lost(format!("store {number} has no queue")))?;
            open.push(OpenStore { number, store, queue });
            open.len() - 1
        }
    };
    Ok(&mut *open[place].queue)
}

fn start(
    queue: &mut dyn TransferQueue,
    slot: usize,
    Request { verb, at, len, memory, .. }: Request,
    bytes: usize,
) -> Result<(), StoreError> {
    let direction = match verb {
        READ => Direction::Read,
        WRITE => Direction::Write,
        _ => return Err(StoreError::Lost(format!("request {verb} is no transfer"))),
    };
    let number = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
    let memory = number(memory)..number(memory).saturating_add(number(len));
    if memory.end > bytes {
        return Err(StoreError::Lost("a transfer of bytes outside of the queue's memory".into()));
    }
    queue.start(Transfer { id: slot, direction, at, memory });
    Ok(())
}
