//! The servers, as rank 0 sees them.

use crate::bell::Bell;
use crate::homes::STRIPE;
use crate::ledger::{Ledger, Row, Slot, rows};
use crate::message::{Message, Verb};
use crate::pace::{Pace, Vain};
use crate::plugin::PARTED;
use crate::store::RankStore;
use crate::wire::{Wire, WireError};
use core::fmt;
use core::ptr::NonNull;
use largesse_pager::{PageStore, Spaces, StoreError, copy_past_caches};
use largesse_pages::{Lent, SPAN};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
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
    /// Until it is over. Read by whoever uses memory of others that is in this process.
    together: RwLock<bool>,
    start: Instant,
}

struct Server {
    rank: u32,
    /// Its stripes, if they are in this process.
    near: Option<Lent>,
    /// Where its first stripe begins.
    lead: u64,
    stripes: u32,
    bell: Bell,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} with {} stripes", self.rank, self.stripes)
    }
}

impl<W: Wire + 'static> Ranks<W> {
    /// Waits until ranks 1 to `last` have said how much they have. `near` tells where their memory is,
    /// if it is in this process.
    ///
    /// # Safety
    /// What `near` hands in is all that the rank lends, readable and writable until [`stop`](Ranks::stop) has returned.
    pub unsafe fn meet(
        wire: Arc<W>,
        last: u32,
        near: impl Fn(u32) -> Result<Option<NonNull<u8>>, WireError>,
    ) -> Result<Ranks<W>, WireError> {
        let mut servers = Vec::new();
        while servers.len() < last as usize {
            let hello = next_message(&*wire)?;
            let (rank, lead, bell) = (hello.rank, hello.first, Bell::default());
            let stripes = u32::try_from(hello.count).ok().filter(|_| hello.verb() == Some(Verb::Hello));
            let stripes = stripes.ok_or_else(|| WireError::misunderstood(rank))?;
            let near = near(rank)?.map(|start| {
                // SAFETY: the caller's promise. Stripes begin at a page wherever they are mapped.
                unsafe { Lent::new(start.add(offset(lead)), stripes as usize * SPAN) }
            });
            servers.push(Server { rank, near, lead, stripes, bell });
        }
        servers.sort_unstable_by_key(|server| server.rank);
        let ledger = Mutex::new(Ledger::new(servers.iter().map(|server| server.stripes)));
        let (asking, together) = (Mutex::new(()), RwLock::new(true));
        Ok(Ranks(Arc::new(Servers { wire, servers, ledger, asking, together, start: Instant::now() })))
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

    /// It is over: the servers stop, and what is asked of a store from now on is lost. Returns when they have done
    /// all that they were told before.
    pub fn stop(&self) -> Result<(), WireError> {
        *self.0.together.write().unwrap_or_else(PoisonError::into_inner) = false;
        let stop = Message::new(Verb::Stop, 0, 0);
        self.0.ask(self.0.servers.iter().map(|server| (server.rank, stop)))?;
        Ok(())
    }
}

impl<W: Wire + 'static> Spaces for Ranks<W> {
    fn create(&self) -> Result<Box<dyn PageStore>, StoreError> {
        Ok(Box::new(RankStore::new(Arc::clone(&self.0))))
    }
}

impl<W: Wire> Servers<W> {
    /// So many slots with memory behind them; `None`: there are not so many.
    pub(crate) fn take(&self, count: usize) -> Result<Option<Vec<Slot>>, StoreError> {
        let taken = self.ledger.lock().unwrap_or_else(PoisonError::into_inner).take(count);
        let Some(slots) = taken else { return Ok(None) };
        let rows = rows(slots.clone());
        if self.ask(rows.iter().map(|&row| self.about(row, Verb::Commit))).map_err(lost)? {
            rows.into_iter().try_for_each(|row| self.map(row))?;
            return Ok(Some(slots));
        }
        self.give_back(slots)?;
        Ok(None)
    }

    /// Maps what a server has in this process, at once: piece by piece costs a fault each.
    fn map(&self, Row { first, count }: Row) -> Result<(), StoreError> {
        if let Some(near) = &self.server(first).near {
            let _together = self.stay()?;
            // What is refused is mapped when it is used.
            let _ = near.populate(first.index as usize * SPAN, count as usize * SPAN);
        }
        Ok(())
    }

    /// Nobody wants the slots any more.
    pub(crate) fn give_back(&self, slots: Vec<Slot>) -> Result<(), StoreError> {
        for row in rows(slots.clone()) {
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
            let _together = self.stay()?;
            let from = near.start().as_ptr().wrapping_add(offset(at));
            // SAFETY: the slot is below the server's stripes, so that it is mapped (`Ranks::meet`); it belongs
            // to the store that asks, which moves no bytes twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
            return Ok(());
        }
        let at = server.lead + at;
        self.wake(server).and_then(|()| self.wire.get(server.rank, at, into)).map_err(lost)
    }

    pub(crate) fn write(&self, slot: Slot, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let (server, at) = self.place(slot, at);
        if let Some(near) = &server.near {
            let _together = self.stay()?;
            let to = near.start().as_ptr().wrapping_add(offset(at));
            // SAFETY: as for reading.
            unsafe { copy_past_caches(from, to) };
            return Ok(());
        }
        let at = server.lead + at;
        self.wake(server).and_then(|()| self.wire.put(server.rank, at, from)).map_err(lost)
    }

    /// As long as it is held the ranks do not part.
    fn stay(&self) -> Result<RwLockReadGuard<'_, bool>, StoreError> {
        let together = self.together.read().unwrap_or_else(PoisonError::into_inner);
        if *together { Ok(together) } else { Err(StoreError::Lost(PARTED.to_owned())) }
    }

    /// Without help from its owner's processor many networks do not reach the memory: a server that
    /// sleeps would answer late.
    fn wake(&self, server: &Server) -> Result<(), WireError> {
        match server.bell.ring(self.start.elapsed()) {
            Some(byte) => self.wire.put(server.rank, 0, &[byte]),
            None => Ok(()),
        }
    }

    /// A server, and where among its stripes.
    fn place(&self, slot: Slot, at: u64) -> (&Server, u64) {
        (self.server(slot), u64::from(slot.index) * STRIPE + at)
    }

    fn server(&self, slot: Slot) -> &Server {
        &self.servers[slot.server as usize]
    }
}

fn offset(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
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
