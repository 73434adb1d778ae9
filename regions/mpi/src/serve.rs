//! What a rank does that holds pages.

use crate::message::{Message, Verb};
use crate::pace::Pace;
use crate::plugin::Mpi;
use crate::wire::{Wire, WireError};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use largesse_pages::{Lent, MapError, PageKind, Reserved, SPAN};

/// The rank that asks.
pub(crate) const FIRST: u32 = 0;

/// The memory that a rank lends: a bell, then stripes.
#[derive(Debug)]
pub struct Memory {
    /// The first byte. Whoever is about to use the stripes from afar changes it, to wake their owner.
    bell: NonNull<u8>,
    stripes: Lent,
    /// Whether stripes that nobody wants can be given back. What a network card may have pinned cannot:
    /// the card would go on with the old pages.
    common: bool,
    /// Address space of our own, when MPI had none.
    _own: Option<Reserved>,
}

// SAFETY: plain memory, of which the bell is touched atomically.
unsafe impl Send for Memory {}

impl Memory {
    /// Room for so many stripes, lent to the other ranks.
    pub fn lend(mpi: &Mpi, stripes: u32, share: bool) -> Result<Memory, NotLent> {
        let len = (stripes as usize + 1) * SPAN; // one for the bell, and to begin at a multiple
        let own = Reserved::new(len, SPAN).map_err(NotLent::Memory)?;
        own.commit(0, len, PageKind::Thp).map_err(NotLent::Memory)?;
        let at = own.start();
        // SAFETY: readable and writable since `commit`, and kept in `_own` if it is what was lent.
        let lent = unsafe { mpi.lend(len as u64, share, at.as_ptr()) }.map_err(NotLent::Mpi)?;
        let lent = NonNull::new(lent).unwrap_or(at);
        // SAFETY: `len` bytes are mapped at `lent` until `leave`, which comes after the value is gone.
        Ok(unsafe { Memory::new(lent, stripes, lent != at, (lent == at).then_some(own)) })
    }

    /// # Safety
    /// A stripe more than `stripes` is mapped at `start`, readable and writable while the value lives.
    pub(crate) unsafe fn new(
        start: NonNull<u8>,
        stripes: u32,
        common: bool,
        own: Option<Reserved>,
    ) -> Memory {
        // SAFETY: the lead is at most a stripe.
        let first = unsafe { start.add(lead(start)) };
        // SAFETY: the caller's promise; a stripe begins at a page.
        let stripes = unsafe { Lent::new(first, stripes as usize * SPAN) };
        Memory { bell: start, stripes, common, _own: own }
    }

    fn rung(&self) -> u8 {
        // SAFETY: the byte is mapped; others change it.
        unsafe { AtomicU8::from_ptr(self.bell.as_ptr()) }.load(Ordering::Relaxed)
    }

    /// A stripe that is used from now on.
    fn commit(&self, stripe: u64) -> bool {
        let Some(at) = self.offset(stripe) else { return false };
        let _ = self.stripes.lock(at, SPAN); // where that is allowed
        self.stripes.populate(at, SPAN).is_ok()
    }

    /// A stripe that nobody uses any more.
    fn release(&self, stripe: u64) {
        if let Some(at) = self.offset(stripe).filter(|_| self.common) {
            // SAFETY: rank 0 says that nobody wants it. What is refused stays.
            let _ = unsafe { self.stripes.remove(at, SPAN) };
        }
    }

    fn offset(&self, stripe: u64) -> Option<usize> {
        let at = usize::try_from(stripe).ok()?.checked_mul(SPAN)?;
        (at < self.stripes.len()).then_some(at)
    }
}

/// Bytes before the first stripe: one at least, so that it begins at a multiple of a stripe.
fn lead(start: NonNull<u8>) -> usize {
    SPAN - start.as_ptr().addr() % SPAN
}

/// No memory could be lent.
#[derive(Debug)]
pub enum NotLent {
    /// The kernel refused.
    Memory(MapError),
    /// MPI did.
    Mpi(WireError),
}

/// Serves rank 0 until it says that it is over.
pub fn serve(wire: &impl Wire, memory: &Memory) -> Result<(), WireError> {
    let room = (memory.stripes.len() / SPAN) as u64;
    wire.send(FIRST, Message::new(Verb::Hello, lead(memory.bell) as u64, room))?;
    let (mut pace, mut rung) = (Pace::new(), memory.rung());
    loop {
        let message = wire.receive()?;
        wire.look()?;
        if message.is_some() || rung != memory.rung() {
            pace.busy();
            rung = memory.rung();
        }
        let Some(message) = message else {
            pace.rest();
            continue;
        };
        let mut stripes = message.first..message.first.saturating_add(message.count);
        match message.verb() {
            Some(Verb::Commit) => {
                let well = stripes.all(|stripe| memory.commit(stripe));
                wire.send(FIRST, Message::done(well))?;
            }
            Some(Verb::Release) => stripes.for_each(|stripe| memory.release(stripe)),
            Some(Verb::Stop) => return wire.send(FIRST, Message::done(true)),
            Some(Verb::Hello | Verb::Done) | None => return Err(WireError::misunderstood(message.rank)),
        }
    }
}
