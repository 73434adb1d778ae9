//! A page store whose pages an agent holds.

use crate::connection::{AgentRefused, Connection, Joined, Payload};
use crate::layer::AgentLayer;
use crate::message::{Hello, LEAVE, VERSION};
use crate::queue::AgentQueue;
use crate::socket::Name;
use core::hash::{Hash as _, Hasher as _};
use largesse_store::{Fork, Overlay, PageStore, StoreError, TransferQueue};
use std::hash::DefaultHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Far memory kept at an agent, in one layer, and in further layers after forks.
#[derive(Debug)]
pub struct AgentStore {
    name: Name,
    about: About,
    overlay: Arc<Overlay<AgentLayer>>,
    now: Mutex<Arc<Connection>>,
    forking: Mutex<Option<Forking>>,
}

/// The facts about the agent that users are shown.
#[derive(Clone, Debug)]
pub struct About {
    /// Process number of the agent.
    pub agent: u32,
    /// Name of the agent's store, without secrets.
    pub store: String,
}

/// The state between the two halves of a fork.
#[derive(Debug)]
struct Forking {
    child: Joined,
    /// Whether the parent needs a new layer as well as the child.
    both: bool,
}

impl AgentStore {
    /// Connects to the agent of the given name, for pages at offsets below `bytes`.
    pub fn connect(name: &Name, bytes: usize) -> Result<AgentStore, AgentRefused> {
        let hello = Hello { bytes: bytes as u64, ..first_words() };
        let joined = Joined::new(name, hello)?;
        let about = About { agent: joined.connection.agent, store: joined.welcome.name() };
        let (connection, windows) = joined.settle()?;
        let now = Arc::new(connection);
        let window = windows.into_iter().next().map(Arc::new);
        let first = AgentLayer::new(&now, 0, window);
        Ok(AgentStore {
            name: name.clone(),
            about,
            overlay: Arc::new(Overlay::new(first)),
            now: Mutex::new(now),
            forking: Mutex::default(),
        })
    }

    /// Returns which process holds the pages, and in which store.
    #[must_use]
    pub const fn about(&self) -> &About {
        &self.about
    }

    fn now(&self) -> MutexGuard<'_, Arc<Connection>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forking(&self) -> MutexGuard<'_, Option<Forking>> {
        self.forking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before_fork(&self, bytes: u64) -> Result<(), StoreError> {
        let both = self.overlay.prepare(bytes)?;
        let (parent, frozen) = (self.now().number, self.overlay.frozen().len() as u64);
        let hello = Hello { bytes, parent, frozen, both: u64::from(both), ..first_words() };
        let child = Joined::new(&self.name, hello).map_err(in_words)?;
        *self.forking() = Some(Forking { child, both });
        Ok(())
    }

    fn in_parent(&self) {
        let Some(Forking { mut child, both }) = self.forking().take() else { return };
        if both {
            let number = u32::try_from(self.overlay.frozen().len()).unwrap_or(u32::MAX);
            let window = child.windows.pop().map(Arc::new);
            self.overlay.push(AgentLayer::new(&self.now(), number, window));
        }
    }

    fn in_child(&self) -> Result<(), StoreError> {
        let Some(Forking { child, both }) = self.forking().take() else { return Ok(()) };
        let (connection, mut windows) = child.settle().map_err(in_words)?;
        let connection = Arc::new(connection);
        if both {
            windows.pop(); // the window of the parent's new layer
        }
        let own = windows.pop().map(Arc::new);
        let frozen = self.overlay.frozen();
        let windows = frozen.iter().map(|layer| layer.window()).chain([own]);
        let layers =
            (0..).zip(windows).map(|(number, window)| Arc::new(AgentLayer::new(&connection, number, window)));
        let before = self.overlay.replace(layers.collect());
        let parents = core::mem::replace(&mut *self.now(), connection);
        // The parent's slots are not mapped in the child: other memory may be at their addresses, so nothing is dropped.
        core::mem::forget((before, frozen, parents));
        Ok(())
    }
}

fn first_words() -> Hello {
    Hello { version: VERSION, image: image(), ..Hello::default() }
}

/// Returns a number that is different for programs that one process executes one after the other (`execve`).
fn image() -> u64 {
    let mut hasher = DefaultHasher::new();
    // SAFETY: `AT_RANDOM` is the address of sixteen random bytes that the kernel gives to each program, or 0.
    unsafe {
        let bytes = libc::getauxval(libc::AT_RANDOM);
        let bytes = core::ptr::with_exposed_provenance(usize::try_from(bytes).unwrap_or(0));
        <*const [u8; 16]>::as_ref(bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// Converts a refusal of a connection during a fork to a store error.
fn in_words(refused: AgentRefused) -> StoreError {
    match refused {
        AgentRefused::Store(error) => error,
        other => StoreError::Lost(other.to_string()),
    }
}

impl PageStore for AgentStore {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.overlay.reserve(at, len)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        self.overlay.read(at, into)
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        self.overlay.write(at, from)
    }

    fn discard(&self, at: u64, len: u64) {
        self.overlay.discard(at, len);
    }

    /// Opens a queue at the agent. Returns `None` if this process maps all stores and so copies all pages itself.
    fn open_queue(&self, bytes: usize, depth: usize) -> Result<Option<Box<dyn TransferQueue>>, StoreError> {
        let queue = AgentQueue::open(&self.now(), &self.overlay, bytes, depth)?;
        Ok(queue.map(|queue| Box::new(queue) as Box<dyn TransferQueue>))
    }

    fn fork(&self, step: Fork) -> Result<(), StoreError> {
        match step {
            Fork::Before { bytes } => self.before_fork(bytes),
            Fork::InParent => {
                self.in_parent();
                Ok(())
            }
            Fork::InChild => self.in_child(),
        }
    }
}

impl Drop for AgentStore {
    /// Frees the agent's stores before the process ends.
    fn drop(&mut self) {
        let _ = self.now().ask(LEAVE, 0, 0, 0, Payload::None);
    }
}
