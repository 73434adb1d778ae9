//! A thread that keeps far memory's descriptors in a descriptor table that the program cannot reach.
//!
//! A program may close descriptors that it did not open (daemons do), and expects its own descriptors to have their
//! usual numbers. The descriptors of far memory are therefore in a separate table, shared only by the broker and the
//! threads that it starts. Other threads ask the broker to use them.
//!
//! ```text
//!   threads of the program ──call──► broker ──starts──► threads that serve faults
//!   the program's table                    a table of our own
//! ```
//!
//! Work on the broker's thread takes no lock of the pager, which the caller may hold, and never waits for a fault of
//! its own.

use largesse_pages::descriptors;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A thread with a descriptor table of its own, which ends with the process.
#[derive(Debug, Default)]
pub struct Broker {
    /// Held by the calling thread from its request until it has the result.
    turn: Mutex<()>,
    pending: Mutex<Option<Task>>,
    asked: Condvar,
    answered: Condvar,
    thread: AtomicU32,
}

/// Work for the broker's thread. It lies on the stack of the thread that waits for its end.
#[derive(Debug)]
struct Task(Work<'static>);

type Work<'a> = *mut (dyn FnMut() + Send + 'a);

// SAFETY: the closure behind the pointer is `Send`, and its owner waits for it.
unsafe impl Send for Task {}

/// A guard that keeps the broker idle: no call runs or begins while it exists.
#[derive(Debug)]
pub struct HeldBroker<'a> {
    _turn: MutexGuard<'a, ()>,
    _pending: MutexGuard<'a, Option<Task>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Broker {
    /// Stack size in bytes of the broker's thread and of the threads that serve faults.
    pub const STACK: usize = 256 << 10;

    /// Starts a broker whose descriptor table has none of the program's descriptors: only numbers 0 to 2 are in use.
    pub fn start() -> io::Result<Arc<Broker>> {
        let broker = Arc::new(Broker::default());
        broker.start_thread()?;
        Ok(broker)
    }

    /// Starts the broker's thread in a process that has none: at first, and again in a forked child.
    pub fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let broker = Arc::clone(self);
        largesse_machine::service::start(c"largesse-broker", Broker::STACK, &[], move || broker.work())?;
        let thread = self.call(|| own_table().map(|()| largesse_pages::thread_id()))?;
        self.thread.store(thread, Ordering::Relaxed); // Relaxed: a thread that forks later has seen this return
        Ok(())
    }

    fn work(&self) -> ! {
        let mut pending = lock(&self.pending);
        loop {
            if let Some(Task(task)) = &*pending {
                // SAFETY: the thread that made the task waits in `call` until nothing is pending.
                unsafe { (**task)() };
                *pending = None;
                self.answered.notify_one();
            }
            pending = self.asked.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs `work` on the broker's thread, where far memory's descriptors are valid, and returns its result.
    pub fn call<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let _turn = lock(&self.turn);
        let (mut work, mut answer) = (Some(work), None);
        let mut task = || answer = work.take().map(|work| work());
        let task: Work<'_> = &raw mut task;
        // SAFETY: only the lifetime changes. The pointer is no longer pending when the loop below ends, and `task`
        // lives until then.
        let task = Task(unsafe { core::mem::transmute::<Work<'_>, Work<'static>>(task) });
        let mut pending = lock(&self.pending);
        *pending = Some(task);
        self.asked.notify_one();
        while pending.is_some() {
            pending = self.answered.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
        drop(pending);
        answer.unwrap_or_else(|| unreachable!("nothing is pending once the work is done"))
    }

    /// Waits for the end of the running call and blocks new calls, for a fork. Dropping the guard, in the parent or in
    /// the child, lets calls run again.
    pub fn hold(&self) -> HeldBroker<'_> {
        HeldBroker { _turn: lock(&self.turn), _pending: lock(&self.pending) }
    }

    /// Returns the kernel's identifier of the broker's thread.
    pub fn thread(&self) -> u32 {
        self.thread.load(Ordering::Relaxed)
    }
}

/// Gives the calling thread, and the threads that it starts, a new descriptor table. Numbers 0 to 2 are occupied in it,
/// so that output meant for a standard stream never reaches a store.
fn own_table() -> io::Result<()> {
    if descriptors::own_table().is_err() {
        own_table_one_by_one("/proc/thread-self/fd")?; // before Linux 5.9, or where a filter does not know the call
    }
    for _ in 0..3 {
        // SAFETY: numbers only.
        if unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn own_table_one_by_one(listed: &str) -> io::Result<()> {
    // SAFETY: a number only. The copy belongs to this thread.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let numbers: Vec<_> = match std::fs::read_dir(listed) {
        Ok(entries) => {
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.to_str()?.parse().ok()).collect()
        }
        // `/proc` is hidden: every number that may be in use.
        Err(_) => (0..most_descriptors()).collect(),
    };
    for number in numbers {
        // SAFETY: this thread has used none of them; that of the directory itself is closed already.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Returns an upper bound of this process's descriptor numbers: its hard limit, and at most 2^20.
fn most_descriptors() -> libc::c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    libc::c_int::try_from(limit.rlim_max.min(1 << 20)).unwrap_or(1 << 20)
}

/// Duplicates the program's standard error into the calling thread's descriptor table; `None` if no thread of the
/// program has one.
pub fn standard_error() -> Option<libc::c_int> {
    // The first thread may have ended; any other thread of the program has the same file. Threads with the broker's
    // table have none there.
    let of_another = || {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.flatten();
        threads
            .filter_map(|thread| {
                let path = thread.path().join("fd/2");
                let file = std::fs::read_link(&path).ok()?;
                let number = thread.file_name().to_str()?.parse().ok()?;
                let is_file = !file.to_string_lossy().starts_with("anon_inode:");
                // A file that another user opened for the program cannot be opened again.
                let again = |_| open(&path, libc::O_WRONLY | libc::O_APPEND).ok();
                is_file.then(|| descriptors::of_thread(number, 2).map_or_else(again, Some))?
            })
            .next()
    };
    descriptors::of_first_thread(2).ok().or_else(of_another)
}

/// Copies the program's standard error into the descriptor table of the calling thread, for a last message.
pub fn borrow_stderr() {
    if let Some(fd) = standard_error() {
        // SAFETY: a descriptor of the broker's table, where nothing else uses number 2.
        unsafe { libc::dup2(fd, 2) };
    }
}

/// Opens a file that another thread has open, by its `path` below `/proc`.
pub(crate) fn open(path: &std::path::Path, flags: libc::c_int) -> io::Result<libc::c_int> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::open(name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOCTTY) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

#[cfg(test)]
mod tests;
