//! Requests and transfers from rank 0 to the servers.

use crate::doorbell::Doorbell;
use crate::homes::STRIPE;
use crate::lent::Lent;
use crate::message::{Message, Verb};
use crate::pace::{Pace, Vain};
use crate::plugin::World;
use crate::serve::LEAD;
use crate::slot_allocator::{SlotAllocator, SlotRun, StripeSlot, runs};
use crate::wire::{RankCopy, Wire, WireError, finish};
use core::fmt;
use largesse_store::{Direction, MappedSpan, StoreError, copy_past_caches};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without an answer after which rank 0 gives a server up as lost.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The servers of one program, as rank 0 sees them, with the allocator of their memory.
#[derive(Debug)]
pub(crate) struct RankServers<W> {
    wire: Arc<W>,
    /// The servers in the order of their ranks 1, 2, …
    servers: Vec<RankServer>,
    allocator: Mutex<SlotAllocator>,
    /// Held from the first of some requests until all of them are answered.
    asking: Mutex<()>,
    /// When rank 0 met the servers: the start of the doorbells' clock.
    met: Instant,
}

/// A rank that lends its memory, as rank 0 sees it.
struct RankServer {
    rank: u32,
    stripes: u32,
    /// Memory of the server, if it is mapped into this process.
    near: Option<Lent>,
    doorbell: Doorbell,
}

impl fmt::Debug for RankServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} with {} stripes", self.rank, self.stripes)
    }
}

impl<W: Wire> RankServers<W> {
    /// Waits until all other ranks of the `world` have announced the memory that they lend.
    pub(crate) fn meet(wire: Arc<W>, world: World) -> Result<RankServers<W>, WireError> {
        let mut servers = Vec::new();
        while servers.len() + 1 < world.ranks as usize {
            let hello = next_message(&*wire)?;
            let (rank, doorbell) = (hello.rank, Doorbell::default());
            let hello = hello.hello().ok_or_else(|| WireError::misunderstood(rank))?;
            let near = if world.shares() { Lent::find(hello) } else { None };
            servers.push(RankServer { rank, stripes: hello.stripes, near, doorbell });
        }
        servers.sort_unstable_by_key(|server| server.rank);
        let allocator = Mutex::new(SlotAllocator::new(servers.iter().map(|server| server.stripes)));
        Ok(RankServers { wire, servers, allocator, asking: Mutex::new(()), met: Instant::now() })
    }

    /// Returns the number of bytes that all servers lend together.
    pub(crate) fn room(&self) -> u64 {
        self.servers.iter().map(|server| u64::from(server.stripes) * STRIPE).sum()
    }

    /// Returns the number of servers whose memory this process cannot map, so that it is copied through MPI.
    pub(crate) fn far(&self) -> usize {
        self.servers.iter().filter(|server| server.near.is_none()).count()
    }

    /// Stops the servers, after they have handled all earlier messages.
    pub(crate) fn stop(&self) -> Result<(), WireError> {
        let stop = Message::new(Verb::Stop, 0, 0);
        self.ask(self.servers.iter().map(|server| (server.rank, stop)))?;
        Ok(())
    }

    /// Takes `count` slots and commits memory to them. Returns `None` if there are too few free slots, or too little
    /// memory.
    pub(crate) fn take(&self, count: usize) -> Result<Option<Vec<StripeSlot>>, StoreError> {
        let taken = self.allocator.lock().unwrap_or_else(PoisonError::into_inner).take(count);
        let Some(slots) = taken else { return Ok(None) };
        let runs = runs(slots.clone());
        if self.ask(runs.iter().map(|&run| self.about(run, Verb::Commit))).map_err(lost)? {
            return Ok(Some(slots));
        }
        self.give_back(slots)?;
        Ok(None)
    }

    /// Frees slots. Only servers whose memory is mapped free it: a network card may have pinned the pages of the
    /// others, and would continue to use these.
    pub(crate) fn give_back(&self, slots: Vec<StripeSlot>) -> Result<(), StoreError> {
        for run in runs(slots.clone()).into_iter().filter(|run| self.server(run.first).near.is_some()) {
            let (rank, message) = self.about(run, Verb::Release);
            self.wire.send(rank, message).map_err(lost)?;
        }
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner).give_back(&slots);
        Ok(())
    }

    /// Sends all requests before it waits for the answers, so that servers work in parallel. Returns whether all
    /// requests succeeded.
    fn ask(&self, questions: impl Iterator<Item = (u32, Message)>) -> Result<bool, WireError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut well, mut open) = (true, 0);
        for (rank, question) in questions {
            self.wire.send(rank, question)?;
            open += 1;
        }
        for _ in 0..open {
            let answer = next_message(&*self.wire)?;
            if answer.verb() != Some(Verb::Done) {
                return Err(WireError::misunderstood(answer.rank));
            }
            well &= answer.first == 1;
        }
        Ok(well)
    }

    /// Returns a message about neighbouring slots, and the rank to which it must be sent.
    fn about(&self, run: SlotRun, verb: Verb) -> (u32, Message) {
        let message = Message::new(verb, u64::from(run.first.index), u64::from(run.count));
        (self.server(run.first).rank, message)
    }

    pub(crate) fn read(&self, slot: StripeSlot, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        // SAFETY: the bytes are not used until the copy has ended.
        let copy = unsafe { self.start(Direction::Read, slot, at, into.as_mut_ptr(), into.len()) }?;
        copy.map_or(Ok(()), |mut copy| finish(&*self.wire, &mut copy).map_err(lost))
    }

    pub(crate) fn write(&self, slot: StripeSlot, at: u64, from: &[u8]) -> Result<(), StoreError> {
        // SAFETY: as above; a write only reads its memory.
        let copy = unsafe { self.start(Direction::Write, slot, at, from.as_ptr().cast_mut(), from.len()) }?;
        copy.map_or(Ok(()), |mut copy| finish(&*self.wire, &mut copy).map_err(lost))
    }

    /// Starts a copy between `len` bytes at `memory` and the bytes of a slot from `at` on. Returns `None` if the
    /// server's memory is mapped, so that the copy was made at once.
    ///
    /// # Safety
    ///
    /// The requirements are those of [`Wire::start`]. In addition, the slot belongs to the calling store, which has no
    /// two transfers of the same bytes in flight.
    pub(crate) unsafe fn start(
        &self,
        direction: Direction,
        slot: StripeSlot,
        at: u64,
        memory: *mut u8,
        len: usize,
    ) -> Result<Option<RankCopy>, StoreError> {
        let (server, at) = self.place(slot, at);
        let Some(near) = &server.near else {
            let mut copy = RankCopy { direction, rank: server.rank, at, memory, len, word: 0 };
            // SAFETY: the caller's promise.
            self.wake(server).and_then(|()| unsafe { self.wire.start(&mut copy) }).map_err(lost)?;
            return Ok(Some(copy));
        };
        match direction {
            // SAFETY: the caller's promise, and `near` has the bytes.
            Direction::Read => unsafe { memory.copy_from_nonoverlapping(near.at(at, len), len) },
            // SAFETY: as above.
            Direction::Write => unsafe {
                copy_past_caches(core::slice::from_raw_parts(memory, len), near.at(at, len));
            },
        }
        Ok(None)
    }

    /// Returns whether a copy that was started has ended.
    pub(crate) fn test(&self, copy: &mut RankCopy) -> Result<bool, StoreError> {
        self.wire.test(copy).map_err(lost)
    }

    /// Returns the indices and memory of the servers that are mapped into this process.
    pub(crate) fn near(&self) -> impl Iterator<Item = (usize, &Lent)> {
        self.servers.iter().enumerate().filter_map(|(server, it)| Some((server, it.near.as_ref()?)))
    }

    /// Returns the position of a slot in the windows; `None` if its server's memory is not mapped.
    pub(crate) fn find(&self, slot: StripeSlot) -> Option<MappedSpan> {
        let window = self.near().position(|(server, _)| server == slot.server as usize)?;
        Some(MappedSpan { window, at: self.place(slot, 0).1 })
    }

    /// Wakes a server that may sleep. On many networks its process must run while others reach its memory: if it slept,
    /// transfers would be late.
    fn wake(&self, server: &RankServer) -> Result<(), WireError> {
        let Some(mut byte) = server.doorbell.ring(self.met.elapsed()) else { return Ok(()) };
        let (direction, memory) = (Direction::Write, &raw mut byte);
        let mut copy = RankCopy { direction, rank: server.rank, at: 0, memory, len: 1, word: 0 };
        // SAFETY: the byte is used by no one else until the copy has ended.
        unsafe { self.wire.start(&mut copy) }?;
        finish(&*self.wire, &mut copy)
    }

    /// Returns the server of a slot, and the offset in the server's memory of byte `at` of the slot.
    fn place(&self, slot: StripeSlot, at: u64) -> (&RankServer, u64) {
        (self.server(slot), LEAD as u64 + u64::from(slot.index) * STRIPE + at)
    }

    fn server(&self, slot: StripeSlot) -> &RankServer {
        &self.servers[slot.server as usize]
    }
}

/// Waits for the next message, for at most [`PATIENCE`].
fn next_message(wire: &impl Wire) -> Result<Message, WireError> {
    let (mut pace, mut vain) = (Pace::new(), Vain::default());
    loop {
        if let Some(message) = wire.receive()? {
            return Ok(message);
        }
        if vain.again() >= PATIENCE {
            let words = format!("a rank has not answered for {} seconds", PATIENCE.as_secs());
            return Err(WireError { call: "waiting", rank: None, words });
        }
        pace.rest();
    }
}

fn lost(error: WireError) -> StoreError {
    StoreError::Lost(error.to_string())
}
