//! The program's end: a connection to the agent. After it was made it needs no descriptor.

use crate::alive::is_alive;
use crate::message::{FIND, Hello, Plain as _, READ, Request, VERSION, WRITE, Welcome, place};
use crate::request_slots::{Ring, SET, SLOTS};
use crate::socket::{self, Name};
use core::fmt;
use core::ptr::NonNull;
use largesse_pages::SPAN;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_store::{MappedSpan, StoreError};
use std::io::ErrorKind;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};

/// Spans that are found at once: 256 MiB.
const FOUND: usize = 128;

/// Why there is no connection.
#[derive(Debug)]
pub enum AgentRefused {
    /// Nobody answers to the name.
    Gone,
    /// It is another user's.
    Foreign,
    /// It speaks another version.
    Version,
    /// What the agent says.
    Store(StoreError),
    /// The kernel's answer to a step of getting to know each other.
    System(std::io::Error),
}

impl fmt::Display for AgentRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentRefused::Gone => write!(f, "the agent that was started for it is gone"),
            AgentRefused::Foreign => write!(f, "the agent belongs to another user, and serves only its own"),
            AgentRefused::Version => {
                write!(f, "the agent is of another version; use the `largesse` that came with this library")
            }
            AgentRefused::Store(error) => write!(f, "{error}"),
            AgentRefused::System(error) => write!(f, "its agent cannot be reached: {error}"),
        }
    }
}

impl std::error::Error for AgentRefused {}

impl From<std::io::Error> for AgentRefused {
    fn from(error: std::io::Error) -> AgentRefused {
        match error.kind() {
            ErrorKind::ConnectionRefused => AgentRefused::Gone,
            ErrorKind::PermissionDenied => AgentRefused::Foreign,
            _ => AgentRefused::System(error),
        }
    }
}

impl From<largesse_pages::MapError> for AgentRefused {
    fn from(error: largesse_pages::MapError) -> AgentRefused {
        AgentRefused::System(std::io::Error::from_raw_os_error(error.errno))
    }
}

/// Slots, and who has them.
#[derive(Debug)]
pub(crate) struct Connection {
    alive: SharedMapping,
    ring: Ring,
    /// Its number, for a child's first words.
    pub(crate) number: u64,
    /// The agent's process.
    pub(crate) agent: u32,
    /// In which spans of its spaces are found. `None`: this process may not map it.
    windows: Vec<Option<SharedMapping>>,
    /// Slots that no thread has; the one used last is on top: its server may not sleep yet.
    free: Mutex<Vec<usize>>,
    freed: Condvar,
}

/// A connection that the agent knows as soon as somebody says who uses it.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) connection: Connection,
    pub(crate) welcome: Welcome,
    /// The new spaces, if each is a window: this one's, and one for the parent.
    pub(crate) windows: Vec<SharedMapping>,
    socket: OwnedFd,
}

/// Pages that go along.
pub(crate) enum Pages<'a> {
    None,
    To(&'a [u8]),
    From(&'a mut [u8]),
}

impl Joined {
    pub(crate) fn new(name: &Name, hello: Hello) -> Result<Joined, AgentRefused> {
        let socket = socket::connect(name)?;
        socket::send(&socket, hello.bytes(), &[])?;
        let mut welcome = Welcome::default();
        let mut bytes = vec![0; size_of::<Welcome>()];
        let got = socket::receive(&socket, &mut bytes)?;
        if got.len >= size_of::<u64>() {
            welcome = Welcome::of(&bytes[..got.len])
                .filter(|it| it.version == VERSION)
                .ok_or(AgentRefused::Version)?;
        }
        welcome.answer.result().map_err(AgentRefused::Store)?;
        let mut files = got.descriptors.into_iter().map(|fd| MemoryFile::received(fd.into_raw_fd()));
        let mut next = || files.next().ok_or(AgentRefused::Gone);
        let alive = next()??.map(false)?;
        let ring = Ring::over(next()??.map(true)?).ok_or(AgentRefused::Version)?;
        let mapped = files.map(|file| file?.map(true));
        let (shared, windows) = if welcome.spans == 0 {
            (Vec::new(), mapped.collect::<Result<_, _>>()?)
        } else {
            (mapped.map(Result::ok).collect(), Vec::new())
        };
        let connection = Connection {
            alive,
            ring,
            number: welcome.connection,
            agent: welcome.agent,
            windows: shared,
            free: Mutex::new((0..SLOTS).collect()),
            freed: Condvar::new(),
        };
        Ok(Joined { connection, welcome, windows, socket })
    }

    /// This process is the one that uses it. Nobody else inherits it.
    pub(crate) fn settle(self) -> Result<(Connection, Vec<SharedMapping>), AgentRefused> {
        socket::send(&self.socket, b"me", &[])?;
        let mut word = [0; 2];
        if socket::receive(&self.socket, &mut word)?.len == 0 {
            return Err(AgentRefused::Gone);
        }
        self.connection.ring.inherited(false)?;
        Ok((self.connection, self.windows))
    }
}

impl Connection {
    /// An error once the agent has died.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if is_alive(&self.alive) { Ok(()) } else { Err(self.gone()) }
    }

    fn gone(&self) -> StoreError {
        StoreError::Lost(format!("the agent that holds it (process {}) has died", self.agent))
    }

    /// One request, at most [`SET`] bytes of pages.
    pub(crate) fn ask(
        &self,
        verb: u32,
        space: u32,
        at: u64,
        len: u64,
        pages: Pages<'_>,
    ) -> Result<(), StoreError> {
        self.check()?;
        let number = self.take();
        let result = self.ask_at(number, Request { verb, space, at, len }, pages);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        self.freed.notify_one();
        result
    }

    fn ask_at(&self, number: usize, request: Request, pages: Pages<'_>) -> Result<(), StoreError> {
        let len = usize::try_from(request.len).unwrap_or(usize::MAX);
        let room = || self.ring.pages(number, len).ok_or(StoreError::OneProcess);
        if let Pages::To(bytes) = pages {
            // SAFETY: the room has as many bytes, and the slot is ours.
            unsafe { room()?.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        let answer = self.ring.slots()[number].ask(request, || is_alive(&self.alive));
        answer.ok_or_else(|| self.gone())?.result()?;
        if let Pages::From(bytes) = pages {
            // SAFETY: as above, and it is our turn again.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(room()?.as_ptr(), bytes.len()) };
        }
        Ok(())
    }

    /// Whether spans are found in windows.
    pub(crate) const fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Where this process has the span of the space that `at` is in, and some after it. `None`: it is carried.
    pub(crate) fn find(&self, space: u32, at: u64) -> Result<Vec<Option<NonNull<u8>>>, StoreError> {
        let mut words = [[0; 8]; FOUND];
        let bytes = words.as_flattened_mut();
        self.ask(FIND, space, at, bytes.len() as u64, Pages::From(bytes))?;
        Ok(words.map(|it| place(u64::from_ne_bytes(it)).and_then(|it| self.address(it))).to_vec())
    }

    fn address(&self, MappedSpan { window, at }: MappedSpan) -> Option<NonNull<u8>> {
        let window = self.windows.get(window)?.as_ref()?;
        let at = usize::try_from(at).ok().filter(|&at| at < window.len() && window.len() - at >= SPAN)?;
        // SAFETY: inside the mapping, as was just checked.
        Some(unsafe { window.start().add(at) })
    }

    fn take(&self) -> usize {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match free.pop() {
                Some(number) => return number,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    pub(crate) fn read(&self, space: u32, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut parts = (at..).step_by(SET).zip(into.chunks_mut(SET));
        parts.try_for_each(|(at, part)| self.ask(READ, space, at, part.len() as u64, Pages::From(part)))
    }

    pub(crate) fn write(&self, space: u32, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let mut parts = (at..).step_by(SET).zip(from.chunks(SET));
        parts.try_for_each(|(at, part)| self.ask(WRITE, space, at, part.len() as u64, Pages::To(part)))
    }
}
