//! A store at an agent.

use crate::connection::{AgentRefused, Connection, Joined, Pages};
use crate::message::{DISCARD, Hello, LEAVE, RESERVE, VERSION};
use crate::socket::Name;
use crate::span_cache::{Homes, parts, within_span};
use core::hash::{Hash as _, Hasher as _};
use core::ops::Range;
use largesse_pages::shared::SharedMapping;
use largesse_store::{Fork, Layer, Overlay, PageStore, Ranges, StoreError, copy_past_caches};
use std::hash::DefaultHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room in a new space is asked for in steps: most of what is written follows what was.
const STEP: u64 = 64 << 10;

/// Far memory in spaces of an agent: one, and more of them once the process forks.
#[derive(Debug)]
pub struct AgentStore {
    name: Name,
    about: About,
    overlay: Overlay<Space>,
    now: Mutex<Arc<Connection>>,
    forking: Mutex<Option<Forking>>,
}

/// What people are told.
#[derive(Clone, Debug)]
pub struct About {
    /// The agent's process.
    pub agent: u32,
    /// The store behind it, without secrets.
    pub store: String,
}

/// Between the two ends of a fork.
#[derive(Debug)]
struct Forking {
    child: Joined,
    /// The parent needs a new space, too.
    both: bool,
}

/// A space of this process.
#[derive(Debug)]
struct Space {
    agent: Arc<Connection>,
    number: u32,
    /// It is this memory, and copied to and from directly.
    window: Option<Arc<SharedMapping>>,
    /// Else its spans may lie in memory of others that this process maps.
    homes: Homes,
}

impl AgentStore {
    /// At the agent of that name; pages lie below `bytes`.
    pub fn connect(name: &Name, bytes: usize) -> Result<AgentStore, AgentRefused> {
        let hello = Hello { bytes: bytes as u64, ..first_words() };
        let joined = Joined::new(name, hello)?;
        let about = About { agent: joined.connection.agent, store: joined.welcome.name() };
        let (connection, windows) = joined.settle()?;
        let now = Arc::new(connection);
        let window = windows.into_iter().next().map(Arc::new);
        let first = Space::new(&now, 0, window);
        Ok(AgentStore {
            name: name.clone(),
            about,
            overlay: Overlay::new(first),
            now: Mutex::new(now),
            forking: Mutex::default(),
        })
    }

    /// Who holds the pages, and where.
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
            self.overlay.push(Space::new(&self.now(), number, window));
        }
    }

    fn in_child(&self) -> Result<(), StoreError> {
        let Some(Forking { child, both }) = self.forking().take() else { return Ok(()) };
        let (connection, mut windows) = child.settle().map_err(in_words)?;
        let connection = Arc::new(connection);
        if both {
            windows.pop(); // the parent's
        }
        let own = windows.pop().map(Arc::new);
        let frozen = self.overlay.frozen();
        let windows = frozen.iter().map(|space| space.window.clone()).chain([own]);
        let spaces =
            (0..).zip(windows).map(|(number, window)| Arc::new(Space::new(&connection, number, window)));
        let before = self.overlay.replace(spaces.collect());
        let parents = core::mem::replace(&mut *self.now(), connection);
        // The parent's slots are not mapped here; what is at their addresses now is somebody else's.
        core::mem::forget((before, frozen, parents));
        Ok(())
    }
}

fn first_words() -> Hello {
    Hello { version: VERSION, image: image(), ..Hello::default() }
}

/// Tells programs apart that a process executes one after the other.
fn image() -> u64 {
    let mut hasher = DefaultHasher::new();
    // SAFETY: the kernel hands sixteen random bytes to each program, or none.
    unsafe {
        let bytes = libc::getauxval(libc::AT_RANDOM);
        let bytes = core::ptr::with_exposed_provenance(usize::try_from(bytes).unwrap_or(0));
        <*const [u8; 16]>::as_ref(bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// A refusal in the middle of the program's life.
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
    /// What the spaces hold is given back, before the process ends.
    fn drop(&mut self) {
        let _ = self.now().ask(LEAVE, 0, 0, 0, Pages::None);
    }
}

impl Space {
    fn new(agent: &Arc<Connection>, number: u32, window: Option<Arc<SharedMapping>>) -> Space {
        Space { agent: Arc::clone(agent), number, window, homes: Homes::default() }
    }

    /// Where this process has the bytes of one span; `None`: the agent carries them.
    fn home(&self, at: u64) -> Result<Option<*mut u8>, StoreError> {
        if !self.agent.has_windows() {
            return Ok(None);
        }
        self.agent.check()?;
        let home = self.homes.find(at, || self.agent.find(self.number, at))?;
        // SAFETY: less than a span, all of which is inside the mapping.
        Ok(home.map(|home| unsafe { home.as_ptr().add(within_span(at)) }))
    }

    fn place(&self, window: &SharedMapping, at: u64, len: usize) -> Result<*mut u8, StoreError> {
        self.agent.check()?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at > window.len() || len > window.len() - at {
            return Err(StoreError::Full { wanted: len as u64 });
        }
        // SAFETY: inside the mapping, as was just checked.
        Ok(unsafe { window.start().as_ptr().add(at) })
    }
}

impl PageStore for Space {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.agent.ask(RESERVE, self.number, at, len, Pages::None)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let from = self.place(window, at, into.len())?;
            // SAFETY: inside the window, where the agent has memory for what was ever written; the pager never
            // moves the same bytes twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
            return Ok(());
        }
        for (at, bytes) in parts(at, into.len()) {
            let into = &mut into[bytes];
            match self.home(at)? {
                // SAFETY: inside the span, where its owner has memory for what was reserved; else as above.
                Some(from) => unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) },
                None => self.agent.read(self.number, at, into)?,
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let to = self.place(window, at, from.len())?;
            // SAFETY: as above; `Overlay` has reserved the bytes, or made room for them.
            unsafe { copy_past_caches(from, to) };
            return Ok(());
        }
        for (at, bytes) in parts(at, from.len()) {
            let from = &from[bytes];
            match self.home(at)? {
                // SAFETY: as above.
                Some(to) => unsafe { copy_past_caches(from, to) },
                None => self.agent.write(self.number, at, from)?,
            }
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        self.homes.forget(&(at..at + len));
        // The agent's death is seen by whoever needs something of it.
        let _ = self.agent.ask(DISCARD, self.number, at, len, Pages::None);
    }
}

impl Layer for Space {
    /// Never all of it: memory that is reserved is taken.
    fn make_room(&self, bytes: Range<u64>, _: &Ranges) -> Result<bool, StoreError> {
        let start = bytes.start / STEP * STEP;
        let end = bytes.end.next_multiple_of(STEP);
        let end = self.window.as_ref().map_or(end, |window| end.min(window.len() as u64));
        self.reserve(start, end - start)?;
        Ok(false)
    }
}
