//! Serves the memory that a rank lends.

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

/// Rank 0, which sends the requests.
pub(crate) const FIRST: u32 = 0;

/// Name of the memory file that a server lends.
pub(crate) const NAME: &CStr = c"largesse-stripes";
/// Offset in bytes of the first stripe in the memory file. Before it are the doorbell (byte 0), which rank 0 changes to
/// keep this server awake before transfers through MPI, and the mark.
pub(crate) const LEAD: usize = SPAN;
/// Number of stripes that are committed between two checks of the available memory.
const STEP: usize = 32;
/// Offset in bytes of the mark in the memory file, by which rank 0 recognises the file that was announced.
pub(crate) const MARK: usize = 64;

/// The memory that a rank lends: a memory file, which rank 0 and the program map if they are on the same machine.
pub struct Memory {
    file: MemoryFile,
    mapping: SharedMapping,
    mark: u32,
    /// The indices of the stripes to which memory is committed.
    held: HashSet<u64>,
    /// A function that returns the number of bytes that may still be committed.
    available: fn() -> u64,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stripes", self.stripes())
    }
}

impl Memory {
    /// Creates a memory file with room for `stripes` stripes. `available` returns the number of bytes that this process
    /// may still commit.
    pub fn new(stripes: u32, available: fn() -> u64) -> Result<Memory, MapError> {
        let file = MemoryFile::new(NAME, LEAD + stripes as usize * SPAN)?;
        let mapping = file.map(true)?;
        let mark = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or(0);
        // SAFETY: inside the mapping, which no other process has yet.
        unsafe { mapping.start().add(MARK).cast().write(mark) };
        Ok(Memory { file, mapping, mark, held: HashSet::new(), available })
    }

    /// Lends the memory to the other ranks through MPI. Every rank must call this once.
    ///
    /// # Safety
    /// `self` must live until [`leave`](Mpi::leave).
    pub unsafe fn lend(&self, mpi: &Mpi) -> Result<(), WireError> {
        // SAFETY: readable and writable; the caller's promise.
        unsafe { mpi.lend(self.mapping.len() as u64, self.mapping.start().as_ptr()) }
    }

    /// Maps the memory file a second time, as another rank does.
    #[cfg(test)]
    pub(crate) fn map_again(&self) -> SharedMapping {
        self.file.map(true).unwrap()
    }

    fn stripes(&self) -> u32 {
        u32::try_from(self.mapping.len() / SPAN - LEAD / SPAN).unwrap_or(u32::MAX)
    }

    /// Returns the message that announces this memory.
    fn hello(&self) -> Message {
        let (process, fd) = (std::process::id(), self.file.descriptor().unsigned_abs());
        Message::new(Verb::Hello, joined(process, fd), joined(self.mark, self.stripes()))
    }

    fn rung(&self) -> u8 {
        // SAFETY: the byte is mapped; others change it.
        unsafe { AtomicU8::from_ptr(self.doorbell().as_ptr()) }.load(Ordering::Relaxed)
    }

    fn doorbell(&self) -> NonNull<u8> {
        self.mapping.start()
    }

    /// Commits memory to `stripes`. Returns `false` if too little is available; the stripes committed until then stay
    /// committed.
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

    /// Frees the memory of a stripe.
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

/// Serves rank 0 until it asks this rank to stop.
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
