//! The agent's session with one process: one thread serves each request slot.

use crate::message::{Answer, DISCARD, FIND, LEAVE, READ, RESERVE, Request, WRITE, word};
use crate::request_slots::RequestSlots;
use largesse_pages::SPAN;
use largesse_store::{ProvidedStore, StoreError};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

/// A store of one process, which its forked children may read as well.
pub(crate) type SharedStore = Arc<dyn ProvidedStore>;

/// The request slots and stores of one process.
#[derive(Debug)]
pub(crate) struct ClientSession {
    requests: RequestSlots,
    stores: RwLock<Vec<SharedStore>>,
}

impl ClientSession {
    pub(crate) fn new(requests: RequestSlots, stores: Vec<SharedStore>) -> Arc<ClientSession> {
        Arc::new(ClientSession { requests, stores: RwLock::new(stores) })
    }

    /// Starts the threads, which serve requests until [`close`](ClientSession::close).
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        for number in 0..self.requests.slots().len() {
            let session = Arc::clone(self);
            let thread = std::thread::Builder::new().name("largesse-serve".into()).stack_size(256 << 10);
            thread.spawn(move || {
                let _whole = AbortOnPanic;
                while session.requests.slots()[number]
                    .serve(|request| session.answer(number, request))
                    .is_some()
                {}
            })?;
        }
        Ok(())
    }

    /// Ends the threads, and frees the stores that no other process reads. To be called when the process has ended.
    pub(crate) fn close(&self) {
        self.stores.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.requests.slots().iter().for_each(|slot| slot.close());
    }

    /// Returns the first `many` stores, which a forked child shares.
    pub(crate) fn lowest(&self, many: usize) -> Vec<SharedStore> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).iter().take(many).cloned().collect()
    }

    /// Adds a store after the first `many`; those after them were created for a fork that failed, and are removed.
    pub(crate) fn grow(&self, many: usize, store: SharedStore) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        stores.truncate(many);
        stores.push(store);
    }

    fn answer(&self, slot: usize, request: Request) -> Answer {
        if request.verb == LEAVE {
            self.stores.write().unwrap_or_else(PoisonError::into_inner).clear();
            return Answer::default();
        }
        Answer::to(self.serve(slot, request))
    }

    fn serve(&self, slot: usize, Request { verb, store, at, len }: Request) -> Result<(), StoreError> {
        let not_understood = || StoreError::Lost(format!("request {verb} of store {store} is unknown"));
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        let store = stores.get(store as usize).map(Arc::clone).ok_or_else(not_understood)?;
        drop(stores);
        let pages = || {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Some((self.requests.pages(slot, len)?, len))
        };
        match verb {
            RESERVE => store.reserve(at, len),
            DISCARD => {
                store.discard(at, len);
                Ok(())
            }
            READ => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: the buffer has `len` bytes, and the slot's turn is the agent's.
                store.read(at, unsafe { core::slice::from_raw_parts_mut(room.as_ptr(), len) })
            }
            WRITE => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: as above.
                store.write(at, unsafe { core::slice::from_raw_parts(room.as_ptr(), len) })
            }
            FIND => {
                let (room, len) = pages().ok_or_else(not_understood)?;
                // SAFETY: as above.
                let words = unsafe { core::slice::from_raw_parts_mut(room.as_ptr(), len) };
                for (at, into) in (at..).step_by(SPAN).zip(words.chunks_exact_mut(size_of::<u64>())) {
                    into.copy_from_slice(&word(store.mapped_span(at)).to_ne_bytes());
                }
                Ok(())
            }
            _ => Err(not_understood()),
        }
    }
}

/// Aborts the agent when a serving thread panics: without that thread a program would wait forever, but it notices the
/// agent's death.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
