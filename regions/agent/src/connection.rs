//! The program's side of a connection to the agent. Once made, it needs no descriptor.

use crate::alive::is_alive;
use crate::message::{FIND, Hello, Plain as _, READ, Request, VERSION, WRITE, Welcome, mapped_span};
use crate::request_slots::{MAX_TRANSFER, QUEUES, RequestSlots, SLOTS};
use crate::socket::{self, Name};
use core::fmt;
use core::ptr::NonNull;
use largesse_pages::SPAN;
use largesse_pages::shared::{MemoryFile, SharedMapping};
use largesse_store::{MappedSpan, StoreError};
use std::io::ErrorKind;
use std::os::fd::{IntoRawFd as _, OwnedFd};
use std::sync::{Condvar, Mutex, PoisonError};

/// Number of spans located by one request: 256 MiB of far memory.
const LOCATED: usize = 128;

/// The reason why a connection was not made.
#[derive(Debug)]
pub enum AgentRefused {
    /// No agent listens under the name.
    Gone,
    /// The agent belongs to another user.
    Foreign,
    /// The agent speaks another version of the protocol.
    Version,
    /// The agent refused the connection with this error.
    Store(StoreError),
    /// A system call failed while connecting.
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

/// The program's connection to the agent: the request slots, and which of them threads use.
#[derive(Debug)]
pub(crate) struct Connection {
    alive: SharedMapping,
    requests: RequestSlots,
    /// Number of the connection, which the first message of a forked child names.
    pub(crate) number: u64,
    /// Process number of the agent.
    pub(crate) agent: u32,
    /// The mapped windows (memory files) of the agent in which spans of the stores lie. `None` for a window that this
    /// process may not map.
    windows: Vec<Option<SharedMapping>>,
    /// Stack of the free request slots. The slot that was used last is on top, because its serving thread may still be
    /// spinning.
    free: Mutex<Vec<usize>>,
    freed: Condvar,
    /// Numbers of the queues that are free to be opened.
    queues: Mutex<Vec<usize>>,
}

/// A connection whose process has not registered with the agent yet.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) connection: Connection,
    pub(crate) welcome: Welcome,
    /// The windows of new stores, if each store is one window: this process's, then the parent's if it asked for one.
    pub(crate) windows: Vec<SharedMapping>,
    socket: OwnedFd,
}

/// The page contents that a request carries to the agent or back.
pub(crate) enum Payload<'a> {
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
        let requests = RequestSlots::over(next()??.map(true)?).ok_or(AgentRefused::Version)?;
        let mapped = files.map(|file| file?.map(true));
        let (shared, windows) = if welcome.spans == 0 {
            (Vec::new(), mapped.collect::<Result<_, _>>()?)
        } else {
            (mapped.map(Result::ok).collect(), Vec::new())
        };
        let connection = Connection {
            alive,
            requests,
            number: welcome.connection,
            agent: welcome.agent,
            windows: shared,
            free: Mutex::new((0..SLOTS).collect()),
            freed: Condvar::new(),
            queues: Mutex::new((0..QUEUES).rev().collect()),
        };
        Ok(Joined { connection, welcome, windows, socket })
    }

    /// Registers this process at the agent as the user of the connection. Its children do not inherit the connection.
    pub(crate) fn settle(self) -> Result<(Connection, Vec<SharedMapping>), AgentRefused> {
        socket::send(&self.socket, b"me", &[])?;
        let mut word = [0; 2];
        if socket::receive(&self.socket, &mut word)?.len == 0 {
            return Err(AgentRefused::Gone);
        }
        self.connection.requests.inherited(false)?;
        Ok((self.connection, self.windows))
    }
}

impl Connection {
    /// Returns an error if the agent has died.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if is_alive(&self.alive) { Ok(()) } else { Err(self.gone()) }
    }

    /// Returns the error that says that the agent has died.
    pub(crate) fn gone(&self) -> StoreError {
        StoreError::Lost(format!("the agent that holds it (process {}) has died", self.agent))
    }

    /// Makes one request and waits for the answer. It carries at most [`MAX_TRANSFER`] bytes of pages.
    pub(crate) fn ask(
        &self,
        verb: u32,
        store: u32,
        at: u64,
        len: u64,
        pages: Payload<'_>,
    ) -> Result<(), StoreError> {
        self.check()?;
        let number = self.take();
        let result = self.ask_at(number, Request { verb, store, at, len, memory: 0 }, pages);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        self.freed.notify_one();
        result
    }

    fn ask_at(&self, number: usize, request: Request, pages: Payload<'_>) -> Result<(), StoreError> {
        let len = usize::try_from(request.len).unwrap_or(usize::MAX);
        let room = || self.requests.pages(number, len).ok_or(StoreError::OneProcess);
        if let Payload::To(bytes) = pages {
            // SAFETY: the buffer has as many bytes, and this thread has the slot.
            unsafe { room()?.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        let answer = self.requests.slots()[number].ask(request, || is_alive(&self.alive));
        answer.ok_or_else(|| self.gone())?.result()?;
        if let Payload::From(bytes) = pages {
            // SAFETY: as above, and the turn is the program's again.
            unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(room()?.as_ptr(), bytes.len()) };
        }
        Ok(())
    }

    pub(crate) const fn requests(&self) -> &RequestSlots {
        &self.requests
    }

    /// Takes the number of a queue that is free to be opened. Returns `None` if there is none, or if queues have no
    /// room for `bytes` bytes of memory.
    pub(crate) fn take_queue(&self, bytes: usize) -> Option<usize> {
        self.requests.has_room(bytes).then_some(())?;
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Gives back the number of a queue that was closed.
    pub(crate) fn give_back_queue(&self, number: usize) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    /// Returns whether spans of the stores lie in windows that this process maps, so that it copies pages itself.
    pub(crate) const fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }

    /// Returns the addresses of the span that contains offset `at` of a store, and of some spans after it; `None` for
    /// each span whose pages the agent copies.
    pub(crate) fn find(&self, store: u32, at: u64) -> Result<Vec<Option<NonNull<u8>>>, StoreError> {
        let mut words = [[0; 8]; LOCATED];
        let bytes = words.as_flattened_mut();
        self.ask(FIND, store, at, bytes.len() as u64, Payload::From(bytes))?;
        Ok(words.map(|it| mapped_span(u64::from_ne_bytes(it)).and_then(|it| self.address(it))).to_vec())
    }

    fn address(&self, MappedSpan { window, at }: MappedSpan) -> Option<NonNull<u8>> {
        let window = self.windows.get(window)?.as_ref()?;
        let at = usize::try_from(at).ok().filter(|&at| at < window.len() && window.len() - at >= SPAN)?;
        // SAFETY: the whole span is inside the mapping, as was just checked.
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

    pub(crate) fn read(&self, store: u32, at: u64, into: &mut [u8]) -> Result<(), StoreError> {
        let mut parts = (at..).step_by(MAX_TRANSFER).zip(into.chunks_mut(MAX_TRANSFER));
        parts.try_for_each(|(at, part)| self.ask(READ, store, at, part.len() as u64, Payload::From(part)))
    }

    pub(crate) fn write(&self, store: u32, at: u64, from: &[u8]) -> Result<(), StoreError> {
        let mut parts = (at..).step_by(MAX_TRANSFER).zip(from.chunks(MAX_TRANSFER));
        parts.try_for_each(|(at, part)| self.ask(WRITE, store, at, part.len() as u64, Payload::To(part)))
    }
}
