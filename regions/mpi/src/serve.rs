//! What a rank does that holds pages.

use crate::message::{Message, Verb, joined};
use crate::pace::Pace;
use crate::plugin::Mpi;
use crate::wire::{Wire, WireError};
use core::ffi::CStr;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_pages::{MapError, SPAN};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

/// The rank that asks.
pub(crate) const FIRST: u32 = 0;

/// What the file is called that a server lends.
pub(crate) const NAME: &CStr = c"largesse-stripes";
/// Where stripes begin. Before them are the bell, the first byte, which whoever is about to use the stripes from afar changes
/// to wake their owner, and the mark.
pub(crate) const LEAD: usize = SPAN;
/// Stripes taken at once; what is left is looked at in between.
const STEP: usize = 32;
/// Where the mark is, by which rank 0 knows the file again that it was told of.
pub(crate) const MARK: usize = 64;

/// The memory that a rank lends: a file in memory, which rank 0 and the program map if they are of the same machine.
pub struct Memory {
    file: MemoryFile,
    mapping: SharedMapping,
    mark: u32,
    /// Stripes that have memory.
    held: HashSet<u64>,
    /// Bytes that may still be taken.
    available: fn() -> u64,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stripes", self.stripes())
    }
}

impl Memory {
    /// Room for so many stripes; `available` tells how much this process may still take.
    pub fn new(stripes: u32, available: fn() -> u64) -> Result<Memory, MapError> {
        let file = MemoryFile::new(NAME, LEAD + stripes as usize * SPAN)?;
        let mapping = file.map(true)?;
        let mark = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(0);
        // SAFETY: inside the mapping, and nobody else has it yet.
        unsafe { mapping.start().add(MARK).cast().write(mark) };
        Ok(Memory { file, mapping, mark, held: HashSet::new(), available })
    }

    /// The other ranks can reach it through MPI. To be called by all ranks, once.
    ///
    /// # Safety
    /// It lives until [`leave`](Mpi::leave).
    pub unsafe fn lend(&self, mpi: &Mpi) -> Result<(), WireError> {
        // SAFETY: readable and writable; the caller's promise.
        unsafe { mpi.lend(self.mapping.len() as u64, self.mapping.start().as_ptr()) }
    }

    /// As another rank sees it.
    #[cfg(test)]
    pub(crate) fn map_again(&self) -> SharedMapping {
        self.file.map(true).unwrap()
    }

    fn stripes(&self) -> u32 {
        u32::try_from(self.mapping.len() / SPAN - LEAD / SPAN).unwrap_or(u32::MAX)
    }

    /// First words.
    fn hello(&self) -> Message {
        let (process, fd) = (std::process::id(), self.file.descriptor().unsigned_abs());
        Message::new(Verb::Hello, joined(process, fd), joined(self.mark, self.stripes()))
    }

    fn rung(&self) -> u8 {
        // SAFETY: the byte is mapped; others change it.
        unsafe { AtomicU8::from_ptr(self.bell().as_ptr()) }.load(Ordering::Relaxed)
    }

    fn bell(&self) -> NonNull<u8> {
        self.mapping.start()
    }

    /// Stripes that are used from now on.
    fn commit(&mut self, stripes: Range<u64>) -> bool {
        let missing: Vec<u64> = stripes.filter(|stripe| !self.held.contains(stripe)).collect();
        missing.chunks(STEP).all(|some| {
            (self.available)() >= (some.len() * SPAN) as u64 && some.iter().all(|&stripe| self.take(stripe))
        })
    }

    fn take(&mut self, stripe: u64) -> bool {
        let Some(at) = self.offset(stripe) else { return false };
        self.held.insert(stripe);
        if self.file.allocate_large(&self.mapping, at, SPAN).is_err() {
            self.release(stripe);
            return false;
        }
        let _ = self.mapping.lock(at, SPAN); // where that is allowed
        true
    }

    /// A stripe that nobody uses any more.
    fn release(&mut self, stripe: u64) {
        self.held.remove(&stripe);
        if let Some(at) = self.offset(stripe) {
            self.mapping.unlock(at, SPAN);
            let _ = self.file.punch(at, SPAN); // what is refused stays
        }
    }

    fn offset(&self, stripe: u64) -> Option<usize> {
        let stripe = usize::try_from(stripe).ok().filter(|&it| it < self.stripes() as usize)?;
        Some(LEAD + stripe * SPAN)
    }
}

/// Serves rank 0 until it says that it is over.
pub fn serve(wire: &impl Wire, memory: &mut Memory) -> Result<(), WireError> {
    wire.send(FIRST, memory.hello())?;
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
        let stripes = message.first..message.first.saturating_add(message.count);
        match message.verb() {
            Some(Verb::Commit) => wire.send(FIRST, Message::done(memory.commit(stripes)))?,
            Some(Verb::Release) => stripes.for_each(|stripe| memory.release(stripe)),
            Some(Verb::Stop) => return wire.send(FIRST, Message::done(true)),
            Some(Verb::Hello | Verb::Done) | None => return Err(WireError::misunderstood(message.rank)),
        }
    }
}
