//! The agent's end: who connects, who has gone, and when nobody is left.
//!
//! ```text
//!   connect ──► Hello ──► new spaces ──► Welcome + memory ──► "me" ──► pidfd, threads (Served)
//!                 │ of a parent: what it wrote so far is shared     a parent's fork closes without a word
//! ```

use crate::alive::Alive;
use crate::client_session::{Served, Space};
use crate::listener::Listener;
use crate::message::{Hello, Plain as _, VERSION, Welcome};
use crate::request_slots::Ring;
use crate::socket::{self, Name};
use largesse_pages::MapError;
use largesse_pages::shared::{MemoryFile, open_process};
use largesse_store::memory::{self, MemoryStore as Window};
use largesse_store::{StoreError, StoreProvider as Spaces};
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Somebody may come a moment after the last one has gone: a script starts its next program.
const LINGER: Duration = Duration::from_millis(300);
/// For the first one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the pages are.
#[derive(Debug)]
pub enum Place {
    /// In the agent's own memory, which programs map.
    Memory,
    /// Elsewhere: the agent carries them, or they are in memory of this machine that programs map.
    Elsewhere(Box<dyn Spaces>),
}

impl Place {
    /// This machine's memory; words for the user where it must not be used.
    pub fn memory() -> Result<Place, String> {
        memory::open().map(|()| Place::Memory)
    }

    const fn is_memory(&self) -> bool {
        matches!(self, Place::Memory)
    }

    /// A new space, and what its user maps.
    fn create(&self, bytes: u64) -> Result<(Space, Option<RawFd>), StoreError> {
        match self {
            Place::Memory => {
                let window = Window::new(usize::try_from(bytes).unwrap_or(usize::MAX))?;
                let file = window.file().descriptor();
                Ok((Arc::new(window), Some(file)))
            }
            Place::Elsewhere(spaces) => Ok((Arc::from(spaces.create()?), None)),
        }
    }

    /// Those in which spaces have spans, as many as can be told of; what is in others is carried.
    fn windows(&self) -> Vec<RawFd> {
        match self {
            Place::Memory => Vec::new(),
            Place::Elsewhere(spaces) => spaces.windows().into_iter().take(socket::MOST - 2).collect(),
        }
    }
}

/// A process that holds the pages of others.
#[derive(Debug)]
pub struct Agent {
    listener: Listener,
    place: Place,
    called: String,
    /// Whoever it was started for.
    owner: Option<OwnedFd>,
    alive: Alive,
    guests: Vec<Guest>,
    strangers: Vec<Stranger>,
    connections: u64,
}

/// A process that is served.
#[derive(Debug)]
struct Guest {
    number: u64,
    pid: i32,
    image: u64,
    process: OwnedFd,
    served: Arc<Served>,
}

/// Somebody who has connected and is not known yet.
#[derive(Debug)]
struct Stranger {
    socket: OwnedFd,
    /// After the first words.
    prepared: Option<Prepared>,
}

#[derive(Debug)]
struct Prepared {
    number: u64,
    image: u64,
    served: Arc<Served>,
}

/// What is sent with a [`Welcome`], open until it was.
struct Parcel {
    ring: MemoryFile,
    windows: Vec<RawFd>,
}

impl Agent {
    /// Listens under a new name, for `owner` and every program that is told the name. The socket lies in a new private
    /// folder below the first of `folders` in which one can be made. `called`: the store's name, without secrets. The
    /// calling thread must be the process's first, and call [`run`](Agent::run).
    pub fn new(folders: &[PathBuf], place: Place, called: &str, owner: Option<i32>) -> io::Result<Agent> {
        let owner = owner.map(process).transpose()?;
        let alive = Alive::hold().map_err(|MapError { errno, .. }| io::Error::from_raw_os_error(errno))?;
        Ok(Agent {
            listener: Listener::open(folders)?,
            place,
            called: called.to_owned(),
            owner,
            alive,
            guests: Vec::new(),
            strangers: Vec::new(),
            connections: 0,
        })
    }

    /// The name under which it listens.
    #[must_use]
    pub const fn name(&self) -> &Name {
        self.listener.name()
    }

    /// Serves until nobody is left.
    pub fn run(mut self) -> io::Result<()> {
        let (mut idle, mut patience) = (Instant::now(), if self.owner.is_some() { LINGER } else { PATIENCE });
        loop {
            let busy = self.owner.is_some() || !self.guests.is_empty() || !self.strangers.is_empty();
            if busy {
                (idle, patience) = (Instant::now(), LINGER);
            } else if idle.elapsed() >= patience {
                return Ok(());
            }
            let news = (!busy).then_some(Duration::from_millis(50));
            let ready = self.wait(news.into_iter().chain(self.listener.pause()).min())?;
            self.look(&ready);
        }
    }

    /// Which of the listening sockets, the owner, the guests and the strangers have news, after `longest` at most.
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
        self.guests.retain(|guest| {
            let stays = !news(&guest.process);
            if !stays {
                guest.served.close();
            }
            stays
        });
        let (told, strangers) = self.strangers.drain(..).partition(|it| news(&it.socket));
        self.strangers = strangers;
        let told: Vec<Stranger> = told;
        for stranger in told {
            // Whoever breaks off, or says what is not understood, is let go.
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
                let descriptors = [self.alive.page().descriptor(), parcel.ring.descriptor()];
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

    /// Spaces for a process, or for a child that one is about to have.
    fn prepare(&mut self, pid: i32, hello: &Hello) -> Result<(Prepared, Welcome, Parcel), StoreError> {
        let system = |error: MapError| StoreError::System { call: "memfd_create", errno: error.errno };
        let ring = Ring::file(!self.place.is_memory()).map_err(system)?;
        let view = Ring::over(ring.map(true).map_err(system)?).ok_or(StoreError::OneProcess)?;
        let parent = self.parent(pid, hello)?;
        let (own, window) = self.place.create(hello.bytes)?;
        let mut windows: Vec<_> = window.into_iter().collect();
        let mut spaces = Vec::new();
        if let Some(parent) = parent {
            let frozen = usize::try_from(hello.frozen).unwrap_or(usize::MAX);
            spaces = parent.lowest(frozen);
            if hello.both != 0 {
                let (again, window) = self.place.create(hello.bytes)?;
                parent.grow(frozen, again);
                windows.extend(window);
            }
        }
        spaces.push(own);
        self.connections += 1;
        let shared = self.place.windows();
        let welcome = Welcome::to(self.connections, &self.called, !shared.is_empty());
        windows.extend(shared);
        let prepared =
            Prepared { number: self.connections, image: hello.image, served: Served::new(view, spaces) };
        Ok((prepared, welcome, Parcel { ring, windows }))
    }

    /// Whose child is to come, if it is one.
    fn parent(&self, pid: i32, hello: &Hello) -> Result<Option<Arc<Served>>, StoreError> {
        if hello.parent == 0 {
            return Ok(None);
        }
        let known = self.guests.iter().find(|it| it.number == hello.parent && it.pid == pid);
        let known = known.ok_or(StoreError::Lost("its agent does not know the parent".to_owned()))?;
        Ok(Some(Arc::clone(&known.served)))
    }

    /// The process is known, and its end will be seen.
    fn take_in(&mut self, socket: &OwnedFd, pid: i32, prepared: Prepared) -> io::Result<()> {
        let Prepared { number, image, served } = prepared;
        let process = process(pid)?;
        // What the process was before it became another program.
        self.guests.retain(|guest| {
            let stays = guest.pid != pid || guest.image == image;
            if !stays {
                guest.served.close();
            }
            stays
        });
        served.start()?;
        self.guests.push(Guest { number, pid, image, process, served });
        // It waits for this, so that its number is its own until here.
        socket::send(socket, b"ok", &[])
    }
}

fn process(pid: i32) -> io::Result<OwnedFd> {
    let fd = open_process(pid).map_err(io::Error::from_raw_os_error)?;
    // SAFETY: a descriptor that the kernel just made for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
