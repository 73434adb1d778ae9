//! What the agent does for one process: a thread for each slot.

use crate::message::{Answer, DISCARD, FIND, LEAVE, READ, RESERVE, Request, WRITE, word};
use crate::request_slots::Ring;
use largesse_pages::SPAN;
use largesse_store::{ProvidedStore, StoreError};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

/// A space: the process's own, or one that others read as well.
pub(crate) type Space = Arc<dyn ProvidedStore>;

/// The slots and spaces of one process.
#[derive(Debug)]
pub(crate) struct Served {
    ring: Ring,
    spaces: RwLock<Vec<Space>>,
}

impl Served {
    pub(crate) fn new(ring: Ring, spaces: Vec<Space>) -> Arc<Served> {
        Arc::new(Served { ring, spaces: RwLock::new(spaces) })
    }

    /// Threads that serve, until [`close`](Served::close).
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        for number in 0..self.ring.slots().len() {
            let served = Arc::clone(self);
            let thread = std::thread::Builder::new().name("largesse-serve".into()).stack_size(256 << 10);
            thread.spawn(move || {
                let _whole = AbortOnPanic;
                while served.ring.slots()[number].serve(|request| served.answer(number, request)).is_some() {}
            })?;
        }
        Ok(())
    }

    /// The process has gone: threads end, spaces that nobody else reads are given back.
    pub(crate) fn close(&self) {
        self.spaces.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.ring.slots().iter().for_each(|slot| slot.close());
    }

    /// The first ones, which a child shares.
    pub(crate) fn lowest(&self, many: usize) -> Vec<Space> {
        self.spaces.read().unwrap_or_else(PoisonError::into_inner).iter().take(many).cloned().collect()
    }

    /// A new one after the first ones; what came after them belonged to a fork that was given up.
    pub(crate) fn grow(&self, many: usize, space: Space) {
        let mut spaces = self.spaces.write().unwrap_or_else(PoisonError::into_inner);
        spaces.truncate(many);
        spaces.push(space);
    }

    fn answer(&self, slot: usize, request: Request) -> Answer {
        if request.verb == LEAVE {
            self.spaces.write().unwrap_or_else(PoisonError::into_inner).clear();
            return Answer::default();
        }
        Answer::to(self.serve(slot, request))
    }

    fn serve(&self, slot: usize, Request { verb, space, at, len }: Request) -> Result<(), StoreError> {
        let not_understood =
            || StoreError::Lost(format!("request {verb} of space {space} is not understood"));
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner);
        let space = spaces.get(space as usize).map(Arc::clone).ok_or_else(not_understood)?;
        drop(spaces);
        let pages = || {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Some((self.ring.pages(slot, len)?, len))
        };
        match verb {
            RESERVE => space.reserve(at, len),
            DISCARD => {
                space.discard(at, len);
                Ok(())
            }
            READ => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: the room has so many bytes, and it is this thread's turn.
                space.read(at, unsafe { core::slice::from_raw_parts_mut(room.as_ptr(), len) })
            }
            WRITE => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: as above.
                space.write(at, unsafe { core::slice::from_raw_parts(room.as_ptr(), len) })
            }
            FIND => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: as above.
                let words = unsafe { core::slice::from_raw_parts_mut(room.as_ptr(), len) };
                for (at, into) in (at..).step_by(SPAN).zip(words.chunks_exact_mut(size_of::<u64>())) {
                    into.copy_from_slice(&word(space.mapped_span(at)).to_ne_bytes());
                }
                Ok(())
            }
            _ => Err(not_understood()),
        }
    }
}

/// A thread that is gone would leave a program waiting for good: it is told by the end of all.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
