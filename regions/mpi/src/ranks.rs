//! The servers, as rank 0 sees them.

use crate::doorbell::Bell;
use crate::homes::STRIPE;
use crate::lent::Lent;
use crate::message::{Message, Verb};
use crate::pace::{Pace, Vain};
use crate::plugin::World;
use crate::serve::LEAD;
use crate::slot_allocator::{Ledger, Row, Slot, rows};
use crate::store::RankStore;
use crate::wire::{Wire, WireError};
use core::ffi::c_int;
use core::fmt;
use largesse_store::{MappedSpan, ProvidedStore, StoreError, StoreProvider, copy_past_caches};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A server that does not answer for so long is lost.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Memory of other ranks. Clones are the same memory.
#[derive(Debug)]
pub struct Ranks<W>(Arc<Servers<W>>);

impl<W> Clone for Ranks<W> {
    fn clone(&self) -> Ranks<W> {
        Ranks(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
pub(crate) struct Servers<W> {
    wire: Arc<W>,
    /// Ranks 1, 2, …
    servers: Vec<Server>,
    ledger: Mutex<Ledger>,
    /// Held from a question to its answers.
    asking: Mutex<()>,
    start: Instant,
}

struct Server {
    rank: u32,
    stripes: u32,
    /// Its memory, if this process has it, too.
    near: Option<Lent>,
    bell: Bell,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} with {} stripes", self.rank, self.stripes)
    }
}

impl<W: Wire + 'static> Ranks<W> {
    /// Waits until all other ranks of the `world` have said how much they have.
    pub fn meet(wire: Arc<W>, world: World) -> Result<Ranks<W>, WireError> {
        let mut servers = Vec::new();
        while servers.len() + 1 < world.ranks as usize {
            let hello = next_message(&*wire)?;
            let (rank, bell) = (hello.rank, Bell::default());
            let hello = hello.hello().ok_or_else(|| WireError::misunderstood(rank))?;
            let near = if world.shares() { Lent::find(hello) } else { None };
            servers.push(Server { rank, stripes: hello.stripes, near, bell });
        }
        servers.sort_unstable_by_key(|server| server.rank);
        let ledger = Mutex::new(Ledger::new(servers.iter().map(|server| server.stripes)));
        Ok(Ranks(Arc::new(Servers { wire, servers, ledger, asking: Mutex::new(()), start: Instant::now() })))
    }

    /// Bytes that all servers have together.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.0.servers.iter().map(|server| u64::from(server.stripes) * STRIPE).sum()
    }

    /// Servers whose memory must be copied through MPI.
    #[must_use]
    pub fn far(&self) -> usize {
        self.0.servers.iter().filter(|server| server.near.is_none()).count()
    }

    /// It is over: the servers stop. Returns when they have done all that they were told before.
    pub fn stop(&self) -> Result<(), WireError> {
        let stop = Message::new(Verb::Stop, 0, 0);
        self.0.ask(self.0.servers.iter().map(|server| (server.rank, stop)))?;
        Ok(())
    }
}

impl<W: Wire + 'static> StoreProvider for Ranks<W> {
    fn create(&self) -> Result<Box<dyn ProvidedStore>, StoreError> {
        Ok(Box::new(RankStore::new(Arc::clone(&self.0))))
    }

    fn windows(&self) -> Vec<c_int> {
        self.0.near().map(|(_, lent)| lent.descriptor()).collect()
    }
}

impl<W: Wire> Servers<W> {
    /// So many slots with memory behind them; `None`: there are not so many.
    pub(crate) fn take(&self, count: usize) -> Result<Option<Vec<Slot>>, StoreError> {
        let taken = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).take(count);
        let Some(slots) = taken else { return Ok(None) };
        let rows = rows(slots.clone());
        if self.ask(rows.iter().map(|&row| self.about(row, Verb::Commit))).map_err(lost)? {
            return Ok(Some(slots));
        }
        self.give_back(slots)?;
        Ok(None)
    }

    /// Nobody wants the slots any more. What a network card may have pinned stays: the card would go on with the old pages.
    pub(crate) fn give_back(&self, slots: Vec<Slot>) -> Result<(), StoreError> {
        for row in rows(slots.clone()).into_iter().filter(|row| self.server(row.first).near.is_some()) {
            let (rank, message) = self.about(row, Verb::Release);
            self.wire.send(rank, message).map_err(lost)?;
        }
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).give_back(&slots);
        Ok(())
    }

    /// Whether all did what they were asked. All are asked before the first answer: they work at the same time.
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

    /// A message about slots, and the rank it is for.
    fn about(&self, row: Row, verb: Verb) -> (u32, Message) {
        let message = Message::new(verb, u64::from(row.first.index), u64::from(row.count));
        (self.server(row.first).rank, message)
    }

    pub(crate) fn read(&self, slot: Slot, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let (server, at) = self.place(slot, at);
        if let Some(near) = &server.near {
            // SAFETY: the bytes belong to the store that asks, which moves none twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(near.at(at, into.len()), into.len()) };
            return Ok(());
        }
        self.wake(server).and_then(|()| self.wire.get(server.rank, at, into)).map_err(lost)
    }

    pub(crate) fn write(&self, slot: Slot, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let (server, at) = self.place(slot, at);
        if let Some(near) = &server.near {
            // SAFETY: as for reading.
            unsafe { copy_past_caches(from, near.at(at, from.len())) };
            return Ok(());
        }
        self.wake(server).and_then(|()| self.wire.put(server.rank, at, from)).map_err(lost)
    }

    /// Servers whose memory this process has, too, and which of them they are.
    fn near(&self) -> impl Iterator<Item = (usize, &Lent)> {
        self.servers.iter().enumerate().filter_map(|(server, it)| Some((server, it.near.as_ref()?)))
    }

    /// Where among the windows a slot lies, if it does.
    pub(crate) fn find(&self, slot: Slot) -> Option<MappedSpan> {
        let window = self.near().position(|(server, _)| server == slot.server as usize)?;
        Some(MappedSpan { window, at: self.place(slot, 0).1 })
    }

    /// Without help from its owner's processor many networks do not reach the memory: a server that
    /// sleeps would answer late.
    fn wake(&self, server: &Server) -> Result<(), WireError> {
        match server.bell.ring(self.start.elapsed()) {
            Some(byte) => self.wire.put(server.rank, 0, &[byte]),
            None => Ok(()),
        }
    }

    /// A server, and where in its memory.
    fn place(&self, slot: Slot, at: u64) -> (&Server, u64) {
        (self.server(slot), LEAD as u64 + u64::from(slot.index) * STRIPE + at)
    }

    fn server(&self, slot: Slot) -> &Server {
        &self.servers[slot.server as usize]
    }
}

/// Waits for it.
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

pub(crate) fn lost(error: WireError) -> StoreError {
    StoreError::Lost(error.to_string())
}
