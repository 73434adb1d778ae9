//! The servers, as rank 0 sees them.

use crate::homes::STRIPE;
use crate::ledger::{Ledger, Row, Slot, rows};
use crate::message::{Message, Verb};
use crate::pace::{AWAKE, Pace};
use crate::store::RankStore;
use crate::wire::{Wire, WireError};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_pager::{PageStore, Spaces, StoreError};
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
    /// Its memory, if it is in this process.
    near: Option<NonNull<u8>>,
    /// Where its first stripe begins.
    lead: u64,
    stripes: u32,
    /// When its bell was last rung, in microseconds after the start.
    rung: AtomicU64,
}

// SAFETY: `near` is plain memory, mapped until the ranks part; who reads and writes which slot is the
// ledger's to say.
unsafe impl Send for Server {}
// SAFETY: as above.
unsafe impl Sync for Server {}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} with {} stripes", self.rank, self.stripes)
    }
}

impl<W: Wire + 'static> Ranks<W> {
    /// Waits until ranks 1 to `last` have said how much they have. `near` tells where their memory is,
    /// if it is in this process.
    pub fn meet(
        wire: Arc<W>,
        last: u32,
        near: impl Fn(u32) -> Result<Option<NonNull<u8>>, WireError>,
    ) -> Result<Ranks<W>, WireError> {
        let mut servers = Vec::new();
        let mut pace = Pace::new();
        let start = Instant::now();
        while servers.len() < last as usize {
            let Some(hello) = wire.receive()? else {
                give_up_after(start)?;
                pace.rest();
                continue;
            };
            let (rank, lead, rung) = (hello.rank, hello.first, AtomicU64::new(0));
            let stripes = u32::try_from(hello.count).ok().filter(|_| hello.verb() == Some(Verb::Hello));
            let stripes = stripes.ok_or_else(|| WireError::misunderstood(rank))?;
            servers.push(Server { rank, near: near(rank)?, lead, stripes, rung });
        }
        servers.sort_unstable_by_key(|server| server.rank);
        let ledger = Mutex::new(Ledger::new(servers.iter().map(|server| server.stripes)));
        Ok(Ranks(Arc::new(Servers { wire, servers, ledger, asking: Mutex::new(()), start })))
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

    /// It is over: the servers stop. Stores must not be used any more.
    pub fn stop(&self) -> Result<(), WireError> {
        let message = Message::new(Verb::Stop, 0, 0);
        self.0.servers.iter().try_for_each(|server| self.0.wire.send(server.rank, message))
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
        if self.commit(&rows(slots.clone())).map_err(lost)? {
            return Ok(Some(slots));
        }
        self.give_back(slots)?;
        Ok(None)
    }

    /// Nobody wants the slots any more.
    pub(crate) fn give_back(&self, slots: Vec<Slot>) -> Result<(), StoreError> {
        for row in rows(slots.clone()) {
            self.tell(row, Verb::Release).map_err(lost)?;
        }
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).give_back(&slots);
        Ok(())
    }

    /// All are asked before the first answer: they work at the same time.
    fn commit(&self, rows: &[Row]) -> Result<bool, WireError> {
        let _one = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().try_for_each(|&row| self.tell(row, Verb::Commit))?;
        let (mut well, mut answers, mut pace) = (true, 0, Pace::new());
        let mut last = Instant::now();
        while answers < rows.len() {
            let Some(answer) = self.wire.receive()? else {
                give_up_after(last)?;
                pace.rest();
                continue;
            };
            if answer.verb() != Some(Verb::Done) {
                return Err(WireError::misunderstood(answer.rank));
            }
            well &= answer.first == 1;
            answers += 1;
            last = Instant::now();
        }
        Ok(well)
    }

    fn tell(&self, row: Row, verb: Verb) -> Result<(), WireError> {
        let (first, count) = (u64::from(row.first.index), u64::from(row.count));
        self.wire.send(self.server(row.first).rank, Message::new(verb, first, count))
    }

    pub(crate) fn read(&self, slot: Slot, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let (server, at) = self.place(slot, at);
        if let Some(near) = server.near {
            // SAFETY: the slot is below the server's stripes and there is memory behind it; it belongs
            // to the store that asks, which moves no bytes twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(near.as_ptr().add(offset(at)), into.len()) };
            return Ok(());
        }
        self.wake(server).and_then(|()| self.wire.get(server.rank, at, into)).map_err(lost)
    }

    pub(crate) fn write(&self, slot: Slot, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let (server, at) = self.place(slot, at);
        if let Some(near) = server.near {
            // SAFETY: as for reading.
            unsafe { near.as_ptr().add(offset(at)).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            return Ok(());
        }
        self.wake(server).and_then(|()| self.wire.put(server.rank, at, from)).map_err(lost)
    }

    /// Without help from its owner's processor many networks do not reach the memory: a server that
    /// sleeps would answer late.
    fn wake(&self, server: &Server) -> Result<(), WireError> {
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let rung = server.rung.load(Ordering::Relaxed); // Relaxed: a second ring does no harm
        if rung != 0 && u128::from(now - rung.min(now)) < AWAKE.as_micros() / 2 {
            return Ok(());
        }
        server.rung.store(now.max(1), Ordering::Relaxed);
        self.wire.put(server.rank, 0, &now.to_le_bytes()[1..2])
    }

    fn place(&self, slot: Slot, at: u64) -> (&Server, u64) {
        let server = self.server(slot);
        (server, server.lead + u64::from(slot.index) * STRIPE + at)
    }

    fn server(&self, slot: Slot) -> &Server {
        &self.servers[slot.server as usize]
    }
}

fn offset(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

fn give_up_after(since: Instant) -> Result<(), WireError> {
    if since.elapsed() < PATIENCE {
        return Ok(());
    }
    let words = format!("a rank has not answered for {} seconds", PATIENCE.as_secs());
    Err(WireError { call: "waiting", rank: None, words })
}

pub(crate) fn lost(error: WireError) -> StoreError {
    StoreError::Lost(error.to_string())
}
