//! A page store whose pages an agent holds.

use crate::connection::{AgentRefused, Connection, Joined, Payload};
use crate::message::{DISCARD, Hello, LEAVE, RESERVE, VERSION};
use crate::socket::Name;
use crate::span_cache::{SpanCache, parts, within_span};
use core::hash::{Hash as _, Hasher as _};
use core::ops::Range;
use largesse_pages::shared::SharedMapping;
use largesse_store::{Fork, Layer, Overlay, PageStore, Ranges, StoreError, copy_past_caches};
use std::hash::DefaultHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Granularity in bytes at which a new layer reserves: most writes follow earlier ones.
const STEP: u64 = 64 << 10;

/// Far memory at an agent, in one layer, and in further ones once the process forks.
#[derive(Debug)]
pub struct AgentStore {
    name: Name,
    about: About,
    overlay: Overlay<AgentLayer>,
    now: Mutex<Arc<Connection>>,
    forking: Mutex<Option<Forking>>,
}

/// The facts about the agent that users are shown.
#[derive(Clone, Debug)]
pub struct About {
    /// Pid of the agent.
    pub agent: u32,
    /// Name of the agent's store, without secrets.
    pub store: String,
}

/// The state between the two halves of a fork.
#[derive(Debug)]
struct Forking {
    child: Joined,
    /// Whether the parent needs a new layer, too.
    both: bool,
}

/// A layer of this process: one store of the agent.
#[derive(Debug)]
struct AgentLayer {
    agent: Arc<Connection>,
    number: u32,
    /// The memory of the store, if this process maps it, which is then copied to and from directly.
    window: Option<Arc<SharedMapping>>,
    /// Addresses of spans of the store in windows that this process maps, used if `window` is `None`.
    spans: SpanCache,
}

impl AgentStore {
    /// Connects to the agent of that name, for pages at offsets below `bytes`.
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
            overlay: Overlay::new(first),
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
        let windows = frozen.iter().map(|layer| layer.window.clone()).chain([own]);
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

/// Returns a number that differs between programs that one process executes one after the other.
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

/// Converts a refusal during a fork to a store error.
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
    /// Frees the agent's stores before the process ends.
    fn drop(&mut self) {
        let _ = self.now().ask(LEAVE, 0, 0, 0, Payload::None);
    }
}

impl AgentLayer {
    fn new(agent: &Arc<Connection>, number: u32, window: Option<Arc<SharedMapping>>) -> AgentLayer {
        AgentLayer { agent: Arc::clone(agent), number, window, spans: SpanCache::default() }
    }

    /// Returns the address of bytes within one span, or `None` if the agent copies them.
    fn span_address(&self, at: u64) -> Result<Option<*mut u8>, StoreError> {
        if !self.agent.has_windows() {
            return Ok(None);
        }
        self.agent.check()?;
        let span = self.spans.find(at, || self.agent.find(self.number, at))?;
        // SAFETY: the offset is less than a span, all of which is inside the mapping.
        Ok(span.map(|span| unsafe { span.as_ptr().add(within_span(at)) }))
    }

    fn address(&self, window: &SharedMapping, at: u64, len: usize) -> Result<*mut u8, StoreError> {
        self.agent.check()?;
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at > window.len() || len > window.len() - at {
            return Err(StoreError::Full { wanted: len as u64 });
        }
        // SAFETY: the range is inside the mapping, as was just checked.
        Ok(unsafe { window.start().as_ptr().add(at) })
    }
}

impl PageStore for AgentLayer {
    fn reserve(&self, at: u64, len: u64) -> Result<(), StoreError> {
        self.agent.ask(RESERVE, self.number, at, len, Payload::None)
    }

    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let from = self.address(window, at, into.len())?;
            // SAFETY: the range is inside the window, where all written pages have memory; the pager never transfers
            // the same bytes twice at once.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
            return Ok(());
        }
        for (at, bytes) in parts(at, into.len()) {
            let into = &mut into[bytes];
            match self.span_address(at)? {
                // SAFETY: the range is inside the span, whose owner has memory for reserved bytes; otherwise as above.
                Some(from) => unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) },
                None => self.agent.read(self.number, at, into)?,
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), StoreError> {
        if let Some(window) = &self.window {
            let to = self.address(window, at, from.len())?;
            // SAFETY: as above; `Overlay` has reserved the bytes, or made room for them.
            unsafe { copy_past_caches(from, to) };
            return Ok(());
        }
        for (at, bytes) in parts(at, from.len()) {
            let from = &from[bytes];
            match self.span_address(at)? {
                // SAFETY: as above.
                Some(to) => unsafe { copy_past_caches(from, to) },
                None => self.agent.write(self.number, at, from)?,
            }
        }
        Ok(())
    }

    fn discard(&self, at: u64, len: u64) {
        self.spans.forget(&(at..at + len));
        // If the agent has died, the next request that needs it reports so.
        let _ = self.agent.ask(DISCARD, self.number, at, len, Payload::None);
    }
}

impl Layer for AgentLayer {
    /// Reserves only these bytes, rounded to `STEP`, because reserved memory is allocated; so it returns `false`.
    fn make_room(&self, bytes: Range<u64>, _: &Ranges) -> Result<bool, StoreError> {
        let start = bytes.start / STEP * STEP;
        let end = bytes.end.next_multiple_of(STEP);
        let end = self.window.as_ref().map_or(end, |window| end.min(window.len() as u64));
        self.reserve(start, end - start)?;
        Ok(false)
    }
}
