//! The agent's side: accepts connections, notices processes that end, and stops when none remains.
//!
//! ```text
//!   connect ──► Hello ──► new stores ──► Welcome + memory ──► "me" ──► pidfd, threads (ClientSession)
//!                 │ for a fork: layers are shared with the child    closed unused if the fork failed
//! ```

use crate::alive::Alive;
use crate::client_session::ClientSession;
use crate::listener::Listener;
use crate::message::{Hello, Plain as _, VERSION, Welcome};
use crate::request_slots::RequestSlots;
use crate::served_queue::SharedStore;
use crate::socket::{self, Name};
use largesse_pages::MapError;
use largesse_pages::shared::open_process;
use largesse_store::memory::{self, MemoryStore};
use largesse_store::{StoreError, StoreProvider};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which the agent keeps running after the last process has ended, because a script may start its next
/// program.
const LINGER: Duration = Duration::from_millis(300);
/// Time for which an agent without an owner waits for its first connection.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time for which an agent without programs waits for transfers in flight before it frees the store.
const ENDING: Duration = Duration::from_secs(5);

/// Where an agent keeps the pages of programs.
#[derive(Debug)]
pub enum PageStorage {
    /// The agent's own memory, which programs map.
    Memory,
    /// A provider. The agent accesses its stores for the program, or the program maps those that are in memory of this
    /// machine.
    Provider(Box<dyn StoreProvider>),
}

impl PageStorage {
    /// Returns the agent's own memory as page storage, or a message for the user if it cannot be used.
    pub fn memory() -> Result<PageStorage, String> {
        memory::open().map(|()| PageStorage::Memory)
    }

    const fn is_memory(&self) -> bool {
        matches!(self, PageStorage::Memory)
    }

    /// Creates a store of `bytes` bytes. Also returns the descriptor of the memory file that its program maps, if any.
    fn create(&self, bytes: u64) -> Result<(SharedStore, Option<RawFd>), StoreError> {
        match self {
            PageStorage::Memory => {
                let window = MemoryStore::new(usize::try_from(bytes).unwrap_or(usize::MAX))?;
                let file = window.file().descriptor();
                Ok((Arc::new(window), Some(file)))
            }
            PageStorage::Provider(provider) => Ok((Arc::from(provider.create()?), None)),
        }
    }

    /// Returns the descriptors of the windows (memory files) that hold spans of stores, as many as one message can
    /// carry. The agent itself copies pages in other windows.
    fn windows(&self) -> Vec<RawFd> {
        match self {
            PageStorage::Memory => Vec::new(),
            PageStorage::Provider(provider) => {
                provider.windows().into_iter().take(socket::MOST - 2).collect()
            }
        }
    }
}

/// A process that holds the pages of other processes.
#[derive(Debug)]
pub struct Agent {
    listener: Listener,
    storage: PageStorage,
    called: String,
    /// The process for which the agent was started, as a pidfd.
    owner: Option<OwnedFd>,
    alive: Alive,
    guests: Vec<Guest>,
    strangers: Vec<Stranger>,
    /// Threads of closed sessions that may still use a store, which is freed when they end.
    ending: Vec<JoinHandle<()>>,
    connections: u64,
}

/// A process with an open session.
#[derive(Debug)]
struct Guest {
    number: u64,
    pid: i32,
    image: u64,
    process: OwnedFd,
    session: Arc<ClientSession>,
}

/// A connection whose process has not registered yet.
#[derive(Debug)]
struct Stranger {
    socket: OwnedFd,
    /// The session that was created in answer to its `Hello`.
    prepared: Option<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    number: u64,
    image: u64,
    session: Arc<ClientSession>,
}

/// The memory files that are sent with a [`Welcome`]. The session and the stores keep them open.
struct Parcel {
    requests: RawFd,
    windows: Vec<RawFd>,
}

impl Agent {
    /// Makes an agent that listens under a new name, for `owner` and for every program that is given the name. The
    /// socket is in a new private folder below the first of `folders` in which one can be made. `called` is the store's
    /// name, without secrets. The calling thread must be the main thread of the process, and must call
    /// [`run`](Agent::run).
    pub fn new(
        folders: &[PathBuf],
        storage: PageStorage,
        called: &str,
        owner: Option<i32>,
    ) -> io::Result<Agent> {
        let owner = owner.map(process).transpose()?;
        let alive = Alive::hold().map_err(|MapError { errno, .. }| io::Error::from_raw_os_error(errno))?;
        Ok(Agent {
            listener: Listener::open(folders)?,
            storage,
            called: called.to_owned(),
            owner,
            alive,
            guests: Vec::new(),
            strangers: Vec::new(),
            ending: Vec::new(),
            connections: 0,
        })
    }

    /// Returns the name under which the agent listens.
    #[must_use]
    pub const fn name(&self) -> &Name {
        self.listener.name()
    }

    /// Serves until the owner and all connected processes have ended.
    pub fn run(mut self) -> io::Result<()> {
        let (mut idle, mut patience) = (Instant::now(), if self.owner.is_some() { LINGER } else { PATIENCE });
        loop {
            let busy = self.owner.is_some() || !self.guests.is_empty() || !self.strangers.is_empty();
            if busy {
                (idle, patience) = (Instant::now(), LINGER);
            } else if idle.elapsed() >= patience {
                self.await_ending();
                return Ok(());
            }
            let news = (!busy).then_some(Duration::from_millis(50));
            let ready = self.wait(news.into_iter().chain(self.listener.pause()).min())?;
            self.look(&ready);
        }
    }

    /// Waits for a while until the stores of closed sessions are freed.
    fn await_ending(&self) {
        let began = Instant::now();
        while self.ending.iter().any(|thread| !thread.is_finished()) && began.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for an event, for at most the time `longest`. Returns the descriptors that have events, of the listener,
    /// the owner, the guests and the strangers.
    fn wait(&self, longest: Option<Duration>) -> io::Result<Vec<RawFd>> {
        let all = self.listener.sockets().chain(&self.owner);
        let all = all.chain(self.guests.iter().map(|it| &it.process));
        let all = all.chain(self.strangers.iter().map(|it| &it.socket));
        let poll = |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polled: Vec<_> = all.map(poll).collect();
        let milliseconds = longest.map_or(-1, |it| i32::try_from(it.as_millis() + 1).unwrap_or(i32::MAX));
        // SAFETY: as many structures as are given.
        let rc = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
        let error = io::Error::last_os_error();
        if rc < 0 && error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        Ok(polled.iter().filter(|it| rc > 0 && it.revents != 0).map(|it| it.fd).collect())
    }

    fn look(&mut self, ready: &[RawFd]) {
        let news = |fd: &OwnedFd| ready.contains(&fd.as_raw_fd());
        self.owner.take_if(|owner| news(owner));
        self.dismiss(|guest| news(&guest.process));
        let (told, strangers) = self.strangers.drain(..).partition(|it| news(&it.socket));
        self.strangers = strangers;
        let told: Vec<Stranger> = told;
        for stranger in told {
            // A connection that breaks off or sends an unknown message is dropped.
            if let Ok(Some(stranger)) = self.listen_to(stranger) {
                self.strangers.push(stranger);
            }
        }
        for socket in self.listener.accept(ready) {
            if socket::with_senders(&socket).is_ok() {
                self.strangers.push(Stranger { socket, prepared: None });
            }
        }
    }

    /// Closes the sessions of the guests for which `ended` returns true.
    fn dismiss(&mut self, ended: impl Fn(&Guest) -> bool) {
        self.ending.retain(|thread| !thread.is_finished());
        for guest in self.guests.extract_if(.., |guest| ended(guest)) {
            self.ending.extend(guest.session.close());
        }
    }

    fn listen_to(&mut self, mut stranger: Stranger) -> io::Result<Option<Stranger>> {
        let mut bytes = [0; size_of::<Hello>()];
        let got = socket::receive(&stranger.socket, &mut bytes)?;
        if got.len == 0 {
            return Ok(None);
        }
        if let Some(prepared) = stranger.prepared.take() {
            self.take_in(&stranger.socket, got.pid, prepared)?;
            return Ok(None);
        }
        let hello = Hello::of(&bytes[..got.len]).filter(|it| it.version == VERSION);
        let prepared = match hello {
            Some(hello) => self.prepare(got.pid, &hello),
            None => Err(StoreError::Lost("the library is of another version".to_owned())),
        };
        match prepared {
            Ok((prepared, welcome, parcel)) => {
                let descriptors = [self.alive.page().descriptor(), parcel.requests];
                let descriptors: Vec<_> = descriptors.into_iter().chain(parcel.windows).collect();
                socket::send(&stranger.socket, welcome.bytes(), &descriptors)?;
                stranger.prepared = Some(prepared);
                Ok(Some(stranger))
            }
            Err(error) => {
                socket::send(&stranger.socket, Welcome::refusing(error).bytes(), &[])?;
                Ok(None)
            }
        }
    }

    /// Creates the session of a process, or that of the child that a process is about to fork.
    fn prepare(&mut self, pid: i32, hello: &Hello) -> Result<(Prepared, Welcome, Parcel), StoreError> {
        let system = |error: MapError| StoreError::System { call: "memfd_create", errno: error.errno };
        let requests = RequestSlots::file(!self.storage.is_memory()).map_err(system)?;
        let descriptor = requests.descriptor();
        let view = RequestSlots::over(requests.map(true).map_err(system)?).ok_or(StoreError::OneProcess)?;
        let parent = self.parent(pid, hello)?;
        let (own, window) = self.storage.create(hello.bytes)?;
        let mut windows: Vec<_> = window.into_iter().collect();
        let mut stores = Vec::new();
        if let Some(parent) = parent {
            let frozen = usize::try_from(hello.frozen).unwrap_or(usize::MAX);
            stores = parent.lowest(frozen);
            if hello.both != 0 {
                let (again, window) = self.storage.create(hello.bytes)?;
                parent.grow(frozen, again);
                windows.extend(window);
            }
        }
        stores.push(own);
        self.connections += 1;
        let shared = self.storage.windows();
        let welcome = Welcome::to(self.connections, &self.called, !shared.is_empty());
        windows.extend(shared);
        let prepared = Prepared {
            number: self.connections,
            image: hello.image,
            session: ClientSession::new(requests, view, stores),
        };
        Ok((prepared, welcome, Parcel { requests: descriptor, windows }))
    }

    /// Returns the session of the process that is about to fork, if `hello` is for its child.
    fn parent(&self, pid: i32, hello: &Hello) -> Result<Option<Arc<ClientSession>>, StoreError> {
        if hello.parent == 0 {
            return Ok(None);
        }
        let known = self.guests.iter().find(|it| it.number == hello.parent && it.pid == pid);
        let known = known.ok_or(StoreError::Lost("its agent does not know the parent".to_owned()))?;
        Ok(Some(Arc::clone(&known.session)))
    }

    /// Starts the session of a process. The agent learns of the process's end by its pidfd.
    fn take_in(&mut self, socket: &OwnedFd, pid: i32, prepared: Prepared) -> io::Result<()> {
        let Prepared { number, image, session } = prepared;
        let process = process(pid)?;
        // Earlier sessions of this process belong to a program that it has replaced by `execve`.
        self.dismiss(|guest| guest.pid == pid && guest.image != image);
        session.start()?;
        self.guests.push(Guest { number, pid, image, process, session });
        // The process waits for this answer, so that its pid cannot have been reused before `open_process`.
        socket::send(socket, b"ok", &[])
    }
}

fn process(pid: i32) -> io::Result<OwnedFd> {
    let fd = open_process(pid).map_err(io::Error::from_raw_os_error)?;
    // SAFETY: the kernel has just created the descriptor for this process.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
