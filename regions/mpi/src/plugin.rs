//! Calls the MPI library through a plug-in that was compiled for it (`plugin/plugin.h`).

use crate::message::Message;
use crate::wire::{RankCopy, Wire, WireError};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use largesse_store::Direction;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The ranks that the launcher started together, from the view of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct World {
    /// Rank of this process.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
    /// Number of ranks on this machine, including this one.
    pub ranks_here: u32,
    /// Not 0 if ranks of this machine may share memory.
    pub share: u32,
}

impl World {
    /// Returns whether ranks of this machine may share memory.
    pub(crate) const fn shares(self) -> bool {
        self.share != 0
    }
}

#[repr(C)]
struct PluginFunctions {
    join: unsafe extern "C" fn(*mut World) -> c_int,
    leave: unsafe extern "C" fn() -> c_int,
    lend: unsafe extern "C" fn(u64, *mut c_void) -> c_int,
    look: unsafe extern "C" fn() -> c_int,
    start: unsafe extern "C" fn(c_int, u32, u64, *mut c_void, u64, *mut u64) -> c_int,
    test: unsafe extern "C" fn(c_int, u32, *mut u64, *mut c_int) -> c_int,
    send: unsafe extern "C" fn(u32, *const Message) -> c_int,
    receive: unsafe extern "C" fn(*mut Message, *mut c_int) -> c_int,
    words: unsafe extern "C" fn(c_int, *mut c_char, u64),
}

/// Name of the table of functions that a plug-in exports. It contains a version.
const TABLE: &CStr = c"largesse_mpi_3";

const PARTING: &str = "parting";
pub(crate) const PARTED: &str = "the ranks have parted";

/// The error for a plug-in that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLoaded {
    /// Path of the plug-in.
    pub path: PathBuf,
    /// Error message of the dynamic linker.
    pub why: String,
}

/// An MPI library in this process.
pub struct Mpi {
    table: &'static PluginFunctions,
    /// Held during each MPI call. `false` once the ranks have parted, after which MPI may not be called.
    calls: Mutex<bool>,
    /// Number of MPI calls under way and of copies in flight.
    pending: AtomicU64,
    /// Number of calls and copies that have begun or ended.
    steps: AtomicU64,
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mpi").finish_non_exhaustive()
    }
}

impl Mpi {
    /// Loads a plug-in, and with it the MPI library for which it was built. Neither is ever unloaded.
    pub fn load(path: &Path) -> Result<Mpi, NotLoaded> {
        let refused = |why: String| NotLoaded { path: path.to_owned(), why };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| refused(error.to_string()))?;
        // Global: parts that MPI libraries load later look for the library's own names.
        // SAFETY: the name ends with a zero; what runs at loading is the plug-in's and the library's.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(refused(linker_says()));
        }
        // SAFETY: a handle that was opened just now, and a name that ends with a zero.
        let table = unsafe { libc::dlsym(handle, TABLE.as_ptr()) }.cast::<PluginFunctions>();
        // SAFETY: the name says the version of the struct, which is constant and stays loaded.
        let table = unsafe { table.as_ref() }.ok_or_else(|| refused(linker_says()))?;
        Ok(Mpi { table, calls: Mutex::new(true), pending: AtomicU64::new(0), steps: AtomicU64::new(0) })
    }

    /// Initialises MPI. Every rank must call this once.
    pub fn join(&self) -> Result<World, WireError> {
        let mut world = World::default();
        // SAFETY: `world` is there to be written to.
        self.call("joining", None, |table| unsafe { (table.join)(&raw mut world) })?;
        Ok(world)
    }

    /// Finalises MPI. Every rank must call this, as its last call of MPI.
    ///
    /// # Safety
    /// No rank uses memory that another rank [lends](Mpi::lend) any more.
    pub unsafe fn leave(&self) -> Result<(), WireError> {
        // SAFETY: the caller's promise.
        self.call(PARTING, None, |table| unsafe { (table.leave)() })
    }

    /// Lends the `len` bytes at `own` to the other ranks. Every rank must call this once; `len` may be 0.
    ///
    /// # Safety
    /// `len` bytes at `own` must be readable and writable until [`leave`](Mpi::leave); if `len` is 0, `own` may be
    /// anything.
    pub unsafe fn lend(&self, len: u64, own: *mut u8) -> Result<(), WireError> {
        // SAFETY: the caller's promise.
        self.call("lending memory", None, |table| unsafe { (table.lend)(len, own.cast()) })
    }

    /// Returns a number that changes with each call or copy that begins or ends; `None` if none is under way.
    pub fn step_now(&self) -> Option<u64> {
        (self.pending.load(Ordering::Relaxed) > 0).then(|| self.steps.load(Ordering::Relaxed))
    }

    fn begins(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed); // Relaxed: read by a watch only
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    fn ends(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.pending.fetch_sub(1, Ordering::Relaxed);
    }

    fn call(
        &self,
        call: &'static str,
        rank: Option<u32>,
        f: impl FnOnce(&PluginFunctions) -> c_int,
    ) -> Result<(), WireError> {
        self.begins();
        let called = self.call_unwatched(call, rank, f);
        self.ends();
        called
    }

    fn call_unwatched(
        &self,
        call: &'static str,
        rank: Option<u32>,
        f: impl FnOnce(&PluginFunctions) -> c_int,
    ) -> Result<(), WireError> {
        let mut open = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if !*open {
            return Err(WireError { call, rank, words: PARTED.into() });
        }
        *open = call != PARTING;
        let error = f(self.table);
        if error == 0 {
            return Ok(());
        }
        let mut words = [0; 512];
        // SAFETY: the length is that of `words`.
        unsafe { (self.table.words)(error, words.as_mut_ptr().cast(), words.len() as u64) };
        let words = CStr::from_bytes_until_nul(&words).unwrap_or_default();
        Err(WireError { call, rank, words: words.to_string_lossy().into_owned() })
    }
}

impl Wire for Mpi {
    unsafe fn start(&self, copy: &mut RankCopy) -> Result<(), WireError> {
        self.begins();
        // SAFETY: the caller's promise; the word is there to be written to.
        let started = self.call_unwatched(about(copy), Some(copy.rank), |table| unsafe {
            let (memory, len) = (copy.memory.cast(), copy.len as u64);
            (table.start)(writes(copy), copy.rank, copy.at, memory, len, &raw mut copy.word)
        });
        if started.is_err() {
            self.ends();
        }
        started
    }

    fn test(&self, copy: &mut RankCopy) -> Result<bool, WireError> {
        let mut done = 0;
        // SAFETY: the word is that of a copy which was started and has not ended.
        let tested = self.call_unwatched(about(copy), Some(copy.rank), |table| unsafe {
            (table.test)(writes(copy), copy.rank, &raw mut copy.word, &raw mut done)
        });
        if tested.is_err() || done != 0 {
            self.ends();
        }
        tested.map(|()| done != 0)
    }

    fn look(&self) -> Result<(), WireError> {
        // SAFETY: takes nothing.
        self.call("looking at memory", None, |table| unsafe { (table.look)() })
    }

    fn send(&self, rank: u32, message: Message) -> Result<(), WireError> {
        // SAFETY: a message, which is read.
        self.call("telling", Some(rank), |table| unsafe { (table.send)(rank, &raw const message) })
    }

    fn receive(&self) -> Result<Option<Message>, WireError> {
        let (mut message, mut found) = (Message::default(), 0);
        // SAFETY: both are there to be written to; any bytes are a message.
        self.call("listening", None, |table| unsafe { (table.receive)(&raw mut message, &raw mut found) })?;
        Ok((found != 0).then_some(message))
    }
}

fn writes(copy: &RankCopy) -> c_int {
    c_int::from(copy.direction == Direction::Write)
}

/// Returns the word for an error message that says what a copy does.
fn about(copy: &RankCopy) -> &'static str {
    match copy.direction {
        Direction::Read => "reading from",
        Direction::Write => "writing to",
    }
}

fn linker_says() -> String {
    // SAFETY: the text is the C library's, and belongs to this thread until its next call of this kind.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason was given".into();
    }
    // SAFETY: a text that ends with a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
