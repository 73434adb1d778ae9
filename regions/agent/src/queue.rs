//! The program's queue of transfers that threads of the agent make.
//!
//! A transfer whose pages lie in several layers is made in pieces, one for each run of pages in one layer. Pieces whose
//! store this process maps are copied at once. Each other piece takes a slot of the shared memory, and its bytes are
//! there, too.

use crate::connection::{Connection, Payload};
use crate::index_ring::{DEPTH, Head, NotPopped, Tail};
use crate::layer::AgentLayer;
use crate::message::{CLOSE, OPEN, READ, Request, WRITE};
use crate::slot::LOOK;
use crate::transfer_slots::TransferSlots;
use core::ffi::c_int;
use core::ops::Range;
use largesse_store::{
    Completion, Direction, Mechanism, Overlay, SplitTransfers, StoreError, Transfer, TransferQueue,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A queue whose transfers the agent makes.
#[derive(Debug)]
pub(crate) struct AgentQueue {
    agent: Arc<Connection>,
    overlay: Arc<Overlay<AgentLayer>>,
    /// Number of the queue among those of this process.
    number: usize,
    mechanism: Mechanism,
    transfers: SplitTransfers,
    /// Index of the transfer to which the piece in each slot belongs.
    pieces: [usize; DEPTH],
    free: Vec<usize>,
    /// Pieces that wait for a free slot, each with the index of its transfer.
    waiting: VecDeque<(usize, Request)>,
    started: Tail,
    ended: Head,
}

impl AgentQueue {
    /// Asks the agent to open a queue of `depth` transfers with `bytes` bytes of memory. Returns `None` if the agent's
    /// store has no queues, or if all queues of this process are in use.
    pub(crate) fn open(
        agent: &Arc<Connection>,
        overlay: &Arc<Overlay<AgentLayer>>,
        bytes: usize,
        depth: usize,
    ) -> Result<Option<AgentQueue>, StoreError> {
        let Some(number) = agent.take_queue(bytes) else { return Ok(None) };
        let mut word = [0; 8];
        let name = u32::try_from(number).unwrap_or(u32::MAX);
        let opened = agent.ask(OPEN, name, bytes as u64, word.len() as u64, Payload::From(&mut word));
        let mechanism = Mechanism::from_number(u64::from_ne_bytes(word));
        let (Ok(()), Some(mechanism)) = (&opened, mechanism) else {
            agent.give_back_queue(number);
            return opened.map(|()| None);
        };
        Ok(Some(AgentQueue {
            agent: Arc::clone(agent),
            overlay: Arc::clone(overlay),
            number,
            mechanism,
            transfers: SplitTransfers::new(depth.min(DEPTH)),
            pieces: [0; DEPTH],
            free: (0..DEPTH).rev().collect(),
            waiting: VecDeque::with_capacity(DEPTH),
            started: Tail::default(),
            ended: Head::default(),
        }))
    }

    fn slots(&self) -> &TransferSlots {
        self.agent.requests().transfers(self.number)
    }

    /// Splits a transfer into pieces: copies those whose store this process maps, and adds the others to `waiting`.
    fn split(&mut self, of: usize, transfer: &Transfer) -> Result<(), StoreError> {
        let mut done = transfer.memory.start;
        while done < transfer.memory.end {
            let (at, left) =
                (transfer.at + (done - transfer.memory.start) as u64, transfer.memory.end - done);
            let (layer, len) = match transfer.direction {
                Direction::Read => self.overlay.source(at, left),
                Direction::Write => (self.overlay.target(at, left)?, left),
            };
            for (at, part) in layer.parts(at, len) {
                let memory = done + part.start..done + part.end;
                // SAFETY: the bytes belong to this transfer, which has not reached the agent.
                let bytes = unsafe { self.agent.requests().queue_bytes(self.number, &memory) };
                if !layer.copy_mapped(transfer.direction, at, bytes)? {
                    let verb = if transfer.direction == Direction::Read { READ } else { WRITE };
                    let (len, memory) = (part.len() as u64, memory.start as u64);
                    self.transfers.add_piece(of);
                    self.waiting.push_back((of, Request { verb, store: layer.number(), at, len, memory }));
                }
            }
            done += len;
        }
        Ok(())
    }

    fn piece_ended(&mut self, of: usize, result: Result<(), StoreError>) {
        if let Some(transfer) = self.transfers.piece_ended(of, result)
            && transfer.direction == Direction::Write
        {
            self.overlay.written(transfer.at, transfer.memory.len());
        }
    }

    /// Ends the pieces that the agent has completed. If there are none, waits for one, for at most the time `wait`.
    /// Returns whether more may follow.
    fn collect(&mut self, wait: Duration) -> bool {
        let mut wait = wait;
        loop {
            let popped = self.agent.requests().transfers(self.number).ended.pop(&mut self.ended, Some(wait));
            let slot = match popped {
                Ok(slot) => slot,
                Err(why) => return why == NotPopped::Empty,
            };
            // SAFETY: the agent has given the slot back.
            let answer = unsafe { self.slots().answer(slot) };
            self.free.push(slot);
            self.piece_ended(self.pieces[slot], answer.result());
            wait = Duration::ZERO;
        }
    }

    /// Ends all transfers with an error, since the agent has died.
    fn fail(&mut self) {
        let in_slots = (0..DEPTH).filter(|slot| !self.free.contains(slot)).map(|slot| self.pieces[slot]);
        let pieces: Vec<usize> = in_slots.chain(self.waiting.drain(..).map(|(of, _)| of)).collect();
        for of in pieces {
            self.piece_ended(of, Err(self.agent.gone()));
        }
        self.free = (0..DEPTH).rev().collect();
    }
}

impl TransferQueue for AgentQueue {
    fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    fn depth(&self) -> usize {
        self.transfers.depth()
    }

    fn in_flight(&self) -> usize {
        self.transfers.in_flight()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.agent.requests().queue_bytes(self.number, &range) }
    }

    fn start(&mut self, transfer: Transfer) {
        let Some(of) = self.transfers.begin(transfer.clone()) else { return };
        let split = self.split(of, &transfer);
        self.piece_ended(of, split);
    }

    fn flush(&mut self) {
        while let Some(slot) = self.free.pop() {
            let Some((of, request)) = self.waiting.pop_front() else {
                self.free.push(slot);
                break;
            };
            self.pieces[slot] = of;
            // SAFETY: the slot was free, and only this thread uses the queue.
            unsafe { self.agent.requests().transfers(self.number).set_request(slot, request) };
            let index = u32::try_from(slot).unwrap_or(u32::MAX);
            self.agent.requests().transfers(self.number).started.put(&mut self.started, index);
        }
        self.agent.requests().transfers(self.number).started.tell(&mut self.started);
    }

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        self.flush();
        let (began, mut next) = (Instant::now(), Duration::ZERO);
        while self.transfers.none_ended() && self.transfers.in_flight() > 0 {
            if !self.collect(next) || (self.transfers.none_ended() && self.agent.check().is_err()) {
                self.fail();
            }
            next = wait.saturating_sub(began.elapsed()).min(LOOK);
            if next.is_zero() {
                break;
            }
        }
        self.flush(); // pieces that waited for a slot
        self.transfers.drain(done);
    }

    /// Returns `None`, since the program has no descriptor of the agent.
    fn descriptor(&self) -> Option<c_int> {
        None
    }
}

impl Drop for AgentQueue {
    /// Waits for the transfers in flight, because they use the queue's memory.
    fn drop(&mut self) {
        while self.transfers.unended() > 0 {
            self.reap(LOOK, &mut |_| {});
        }
        let name = u32::try_from(self.number).unwrap_or(u32::MAX);
        // An agent that is gone uses the memory no more.
        let _ = self.agent.ask(CLOSE, name, 0, 0, Payload::None);
        self.agent.give_back_queue(self.number);
    }
}
