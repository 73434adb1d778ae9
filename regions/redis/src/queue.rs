//! A queue of transfers that sends requests without waiting for the answers to earlier ones.
//!
//! ```text
//!   start ──► part of each home ──► pipeline of its primary: a connection, and the parts in the order of their answers
//!   reap  ◄── next answer ◄─────────┘          │ no answer, or an error that may pass
//!         ◄── repeated as a blocking store does ◄┘
//! ```
//! The blocking store repeats requests, follows hash slots to other servers, and ends connections whose writes may
//! still be executed. A queue leaves all this to it, and only tells it what was sent before. A queue has at most one
//! connection to each server, and borrows it from the common pool while it waits for answers.

use crate::failure::Failure;
use crate::link::{Link, Requests};
use crate::pages::StorePages;
use crate::reservations::{HomePart, PAGE, parts};
use crate::servers::{Attempts, Effect};
use crate::target::Address;
use core::ffi::c_int;
use core::ops::Range;
use largesse_store::{
    Completion, Direction, Mechanism, QueueBytes, SplitTransfers, StoreError, Transfer, TransferQueue,
};
use redis::Value;
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// Number of threads that make the transfers of a program's queue, and so of connections to one server. There are
/// several, so that a fault's read does not wait for the answers to earlier prefetches.
pub(crate) const THREADS: usize = 4;

/// A queue of transfers that are sent to the servers of a store without waiting for earlier answers.
pub(crate) struct RedisQueue {
    pages: StorePages,
    memory: QueueBytes,
    transfers: SplitTransfers,
    /// The connections in use: those on which parts await answers.
    pipelines: Vec<Pipeline>,
    /// Parts that must be repeated, each with the connections on which a write of it got no answer.
    failed: Vec<(TransferPart, Vec<(Address, i64)>)>,
}

/// A connection to one server, with requests that were sent before earlier ones were answered.
struct Pipeline {
    address: Address,
    link: Link,
    /// Requests that were not sent yet.
    outgoing: Requests,
    /// Parts whose answers are awaited, in the order of these answers.
    awaited: VecDeque<TransferPart>,
}

/// The part of a transfer that lies in one home (2 MiB of a store, which is one key).
struct TransferPart {
    /// Index of the transfer in `transfers`.
    of: usize,
    direction: Direction,
    part: HomePart,
    memory: Range<usize>,
    began: Instant,
    /// Number of commands, each of which gets one answer.
    commands: usize,
    /// Number of replicas that must confirm the part. If it is not 0, the last answer is their number.
    replicas: u32,
}

impl TransferPart {
    const fn effect(&self) -> Effect {
        match self.direction {
            Direction::Read => Effect::Transient,
            Direction::Write => Effect::Durable,
        }
    }
}

impl fmt::Debug for RedisQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (servers, transfers) = (self.pages.shared.servers.target(), self.transfers.in_flight());
        write!(f, "RedisQueue({servers}, {transfers} in flight)")
    }
}

impl RedisQueue {
    pub(crate) fn new(pages: StorePages, memory: QueueBytes, depth: usize) -> RedisQueue {
        let transfers = SplitTransfers::new(depth);
        RedisQueue { pages, memory, transfers, pipelines: Vec::new(), failed: Vec::new() }
    }

    /// Adds the commands that read or write the pages of `part` to `requests`.
    fn add_requests(&mut self, part: &TransferPart, requests: &mut Requests) {
        match part.direction {
            Direction::Read => self.pages.read(&part.part, requests),
            Direction::Write => {
                // SAFETY: the bytes belong to this transfer until it was reaped.
                let from = unsafe { self.memory.bytes(part.memory.clone()) };
                self.pages.write(&part.part, from, requests);
            }
        }
    }

    /// Adds the requests of a part to those that will be sent to the primary of its hash slot. If the primary cannot be
    /// reached now, the part is to be repeated.
    fn send(&mut self, mut part: TransferPart) {
        let place = match self.pages.shared.check().and_then(|()| self.pipeline(part.part.slot)) {
            Ok(Some(place)) => place,
            Ok(None) => return self.failed.push((part, Vec::new())),
            Err(error) => return self.ended(part.of, Err(error)),
        };
        let mut outgoing = core::mem::take(&mut self.pipelines[place].outgoing);
        let before = outgoing.commands();
        self.add_requests(&part, &mut outgoing);
        let servers = &self.pages.shared.servers;
        part.replicas = servers.confirmations(part.part.slot, part.effect());
        if part.replicas > 0 {
            outgoing.add(&servers.wait(part.replicas));
        }
        part.commands = outgoing.commands() - before;
        let pipeline = &mut self.pipelines[place];
        pipeline.outgoing = outgoing;
        pipeline.awaited.push_back(part);
    }

    /// Returns the index of the pipeline for a hash slot; `None` if the slot's primary cannot be reached now.
    fn pipeline(&mut self, slot: u16) -> Result<Option<usize>, StoreError> {
        let servers = &self.pages.shared.servers;
        let layout = servers.layout();
        let Some(shard) = layout.shard(slot) else { return Ok(None) };
        if let Some(place) = self.pipelines.iter().position(|it| it.address == shard.primary) {
            return Ok(Some(place));
        }
        match servers.link(&shard.primary) {
            Ok(link) => {
                let (address, outgoing, awaited) =
                    (shard.primary.clone(), Requests::default(), VecDeque::new());
                self.pipelines.push(Pipeline { address, link, outgoing, awaited });
                Ok(Some(self.pipelines.len() - 1))
            }
            Err(Failure::Permanent(why)) => Err(self.pages.shared.lost(&why)),
            Err(_) => Ok(None),
        }
    }

    /// Waits for the next answer on the connection on which the longest-waiting part was started.
    fn receive(&mut self) {
        let first = |pipeline: &Pipeline| pipeline.awaited.front().map(|part| part.began);
        let oldest = (0..self.pipelines.len()).min_by_key(|&place| first(&self.pipelines[place]));
        let Some(place) = oldest else { return };
        let pipeline = &mut self.pipelines[place];
        let Some(commands) = pipeline.awaited.front().map(|part| part.commands) else { return };
        match pipeline.link.receive(commands, self.pages.shared.servers.target()) {
            Ok(answers) => {
                let part = pipeline.awaited.pop_front();
                if pipeline.awaited.is_empty() {
                    let Pipeline { address, link, .. } = self.pipelines.swap_remove(place);
                    self.pages.shared.servers.give_back(&address, link);
                }
                if let Some(part) = part {
                    self.answered(part, answers);
                }
            }
            Err(_) => self.broken(place),
        }
    }

    fn answered(&mut self, part: TransferPart, mut answers: Vec<Value>) {
        let shared = &self.pages.shared;
        let failure = Failure::among(&answers, shared.servers.target());
        match failure.or_else(|| shared.servers.unconfirmed(&mut answers, part.replicas)) {
            Some(Failure::Permanent(why)) => {
                let lost = shared.lost(&why);
                self.ended(part.of, Err(lost));
            }
            Some(_) => self.failed.push((part, Vec::new())),
            None => {
                let taken = self.take(&part, &answers);
                self.ended(part.of, taken);
            }
        }
    }

    fn take(&mut self, part: &TransferPart, answers: &[Value]) -> Result<(), StoreError> {
        if part.direction == Direction::Write {
            return Ok(());
        }
        // SAFETY: the bytes belong to this transfer until it was reaped.
        let into = unsafe { self.memory.bytes(part.memory.clone()) };
        self.pages.take(&part.part, answers, into)
    }

    /// Handles the loss of a connection: all parts that were sent on it and not answered are to be repeated.
    fn broken(&mut self, place: usize) {
        let Pipeline { address, link, awaited, .. } = self.pipelines.swap_remove(place);
        self.pages.shared.servers.forget_idle(&address);
        for part in awaited {
            let unanswered = match part.direction {
                Direction::Write => vec![(address.clone(), link.number())],
                Direction::Read => Vec::new(),
            };
            self.failed.push((part, unanswered));
        }
    }

    /// Makes the failed parts again, as the blocking store does, after all awaited answers have arrived.
    fn repeat(&mut self) {
        while !self.pipelines.is_empty() {
            self.receive();
        }
        for (part, unanswered) in core::mem::take(&mut self.failed) {
            let mut requests = Requests::default();
            self.add_requests(&part, &mut requests);
            let timeout = self.pages.shared.servers.target().timeout;
            let attempts = Attempts { began: part.began, timeout, unanswered };
            let answers = self.pages.shared.run(&part.part, &requests, part.effect(), attempts);
            let result = answers.and_then(|answers| self.take(&part, &answers));
            self.ended(part.of, result);
        }
    }

    fn ended(&mut self, of: usize, result: Result<(), StoreError>) {
        self.transfers.piece_ended(of, result);
    }
}

impl TransferQueue for RedisQueue {
    fn mechanism(&self) -> Mechanism {
        Mechanism::RedisPipelines
    }

    fn depth(&self) -> usize {
        self.transfers.depth()
    }

    fn in_flight(&self) -> usize {
        self.transfers.in_flight()
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.memory.bytes(range) }
    }

    fn start(&mut self, transfer: Transfer) {
        let Transfer { direction, at, memory, .. } = transfer.clone();
        let Some(of) = self.transfers.begin(transfer) else { return };
        let (mut next, began) = (memory.start, Instant::now());
        for part in parts(self.pages.id, at, memory.len() as u64) {
            let end = next + part.pages.len() * PAGE;
            self.transfers.add_piece(of);
            self.send(TransferPart {
                of,
                direction,
                part,
                memory: next..end,
                began,
                commands: 0,
                replicas: 0,
            });
            next = end;
        }
        self.ended(of, Ok(()));
    }

    fn flush(&mut self) {
        for place in (0..self.pipelines.len()).rev() {
            let Pipeline { link, outgoing, .. } = &mut self.pipelines[place];
            let outgoing = core::mem::take(outgoing);
            if link.send(&[&outgoing], self.pages.shared.servers.target()).is_err() {
                self.broken(place);
            }
        }
    }

    /// Calls `done` for each ended transfer. It may take longer than `wait`: it reads an answer that has begun to its
    /// end, and repeats failed requests for as long as a blocking store does.
    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        self.flush();
        if self.transfers.none_ended() && !wait.is_zero() {
            if self.failed.is_empty() {
                self.receive();
            }
            if !self.failed.is_empty() {
                self.repeat();
            }
        }
        self.transfers.drain(done);
    }

    fn descriptor(&self) -> Option<c_int> {
        None
    }
}

impl Drop for RedisQueue {
    /// Waits for the transfers in flight, because a write without an answer could overwrite a later one.
    fn drop(&mut self) {
        while self.transfers.unended() > 0 {
            self.reap(Duration::from_secs(1), &mut |_| {});
        }
    }
}
