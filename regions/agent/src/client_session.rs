//! The agent's session with one process: one thread for each request slot, and some threads for each open queue.

use crate::message::{Answer, CLOSE, DISCARD, FIND, LEAVE, OPEN, READ, RESERVE, Request, WRITE, word};
use crate::request_slots::{QUEUES, RequestSlots};
use crate::served_queue::{ServedQueue, SharedStore};
use largesse_pages::SPAN;
use largesse_pages::shared::MemoryFile;
use largesse_store::{QueueBytes, StoreError};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

/// The request slots and stores of one process.
#[derive(Debug)]
pub(crate) struct ClientSession {
    /// The memory file that the agent and the process share.
    file: MemoryFile,
    requests: RequestSlots,
    stores: RwLock<Vec<SharedStore>>,
    /// The threads of each queue, empty if it is not open.
    queues: Mutex<[Vec<JoinHandle<()>>; QUEUES]>,
}

impl ClientSession {
    pub(crate) fn new(
        file: MemoryFile,
        requests: RequestSlots,
        stores: Vec<SharedStore>,
    ) -> Arc<ClientSession> {
        Arc::new(ClientSession { file, requests, stores: RwLock::new(stores), queues: Mutex::default() })
    }

    /// Starts the session's threads, which serve requests until [`close`](ClientSession::close).
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<()> {
        for number in 0..self.requests.slots().len() {
            let session = Arc::clone(self);
            spawn(move || {
                while session.requests.slots()[number]
                    .serve(|request| session.answer(number, request))
                    .is_some()
                {}
            })?;
        }
        Ok(())
    }

    /// Ends the session's threads, and frees the stores that no other process reads. The caller calls this after the
    /// process has ended. Returns the threads that may still use a store, which the last of them frees.
    pub(crate) fn close(&self) -> Vec<JoinHandle<()>> {
        self.stores.write().unwrap_or_else(PoisonError::into_inner).clear();
        self.requests.slots().iter().for_each(|slot| slot.close());
        self.end_queues()
    }

    /// Ends the threads of queues after they have made all transfers that were started, and returns these threads.
    fn end_queues(&self) -> Vec<JoinHandle<()>> {
        let mut queues = self.queues();
        for number in (0..QUEUES).filter(|&number| !queues[number].is_empty()) {
            self.requests.transfers(number).started.close();
        }
        queues.iter_mut().flat_map(core::mem::take).collect()
    }

    fn queues(&self) -> MutexGuard<'_, [Vec<JoinHandle<()>>; QUEUES]> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self, number: u32) -> Result<SharedStore, StoreError> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        let store = stores.get(number as usize).map(Arc::clone);
        store.ok_or_else(|| StoreError::Lost(format!("store {number} is unknown")))
    }

    /// Opens the queue `number` with `bytes` bytes of memory. Returns the number of its mechanism, or 0 if the stores
    /// have no queues.
    fn open(self: &Arc<Self>, number: usize, bytes: usize) -> Result<u64, StoreError> {
        let newest = self.stores.read().unwrap_or_else(PoisonError::into_inner).last().map(Arc::clone);
        let threads = newest.as_ref().map_or(0, |store| store.queue_threads());
        let mut queues = self.queues();
        if threads == 0 || number >= QUEUES || !queues[number].is_empty() || !self.requests.has_room(bytes) {
            return Ok(0);
        }
        let opened = self.requests.open_queue(&self.file, number, bytes);
        opened.map_err(|_| StoreError::Full { wanted: bytes as u64 })?;
        let memory = {
            let session = Arc::clone(self);
            // SAFETY: inside the mapping, which the session keeps.
            move || unsafe {
                QueueBytes::over(session.requests.queue_memory(number), bytes, Arc::clone(&session))
            }
        };
        let probe = newest.and_then(|store| store.open_queue_over(memory(), 1));
        let mechanism = probe.map_or(0, |queue| queue.mechanism() as u64);
        let served = Arc::new(ServedQueue::default());
        for _ in 0..threads {
            let (session, served, memory) = (Arc::clone(self), Arc::clone(&served), memory.clone());
            let thread = spawn(move || {
                let store = |number| session.store(number);
                served.serve(session.requests.transfers(number), memory, store);
            });
            let refused = |error: io::Error| StoreError::System {
                call: "pthread_create",
                errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
            };
            queues[number].push(thread.map_err(refused)?);
        }
        Ok(mechanism)
    }

    /// Closes a queue, and waits until none of its threads uses it.
    fn close_queue(&self, number: usize) {
        let Some(threads) = self.queues().get_mut(number).map(core::mem::take) else { return };
        if threads.is_empty() {
            return;
        }
        self.requests.transfers(number).started.close();
        for thread in threads {
            let _ = thread.join(); // a panic has aborted the agent
        }
        self.requests.close_queue(&self.file, number);
    }

    /// Returns the `many` oldest stores, which a forked child shares.
    pub(crate) fn lowest(&self, many: usize) -> Vec<SharedStore> {
        self.stores.read().unwrap_or_else(PoisonError::into_inner).iter().take(many).cloned().collect()
    }

    /// Keeps the `many` oldest stores, and adds `store` to them. Removes newer stores, which were created for a fork
    /// that failed.
    pub(crate) fn grow(&self, many: usize, store: SharedStore) {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        stores.truncate(many);
        stores.push(store);
    }

    fn answer(self: &Arc<Self>, slot: usize, request: Request) -> Answer {
        if request.verb == LEAVE {
            self.stores.write().unwrap_or_else(PoisonError::into_inner).clear();
            for thread in self.end_queues() {
                let _ = thread.join(); // a panic has aborted the agent
            }
            return Answer::default();
        }
        Answer::to(self.serve(slot, request))
    }

    fn serve(
        self: &Arc<Self>,
        slot: usize,
        Request { verb, store: number, at, len, .. }: Request,
    ) -> Result<(), StoreError> {
        let not_understood = || StoreError::Lost(format!("request {verb} of store {number} is unknown"));
        let pages = || {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            Some((self.requests.pages(slot, len)?, len))
        };
        match verb {
            OPEN => {
                let (room, len) = pages().filter(|(_, len)| *len == 8).ok_or_else(not_understood)?;
                let opened = self.open(number as usize, usize::try_from(at).unwrap_or(usize::MAX))?;
                // SAFETY: the buffer has `len` bytes, and the slot's turn is the agent's.
                let word = unsafe { core::slice::from_raw_parts_mut(room.as_ptr(), len) };
                word.copy_from_slice(&opened.to_ne_bytes());
                return Ok(());
            }
            CLOSE => {
                self.close_queue(number as usize);
                return Ok(());
            }
            _ => {}
        }
        let store = self.store(number)?;
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

/// Starts a thread of the session, which runs `work`.
fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("largesse-serve".into()).stack_size(256 << 10);
    thread.spawn(move || {
        let _whole = AbortOnPanic;
        work();
    })
}

/// Aborts the agent if the thread that holds this panics. Without that thread a program would wait forever, but
/// programs notice the agent's death.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
