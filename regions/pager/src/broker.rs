//! Descriptors out of the program's reach.
//!
//! A program may close descriptors that it does not know (daemons do), and expects its own to have the
//! numbers that they always had. So those of far memory are in a table of their own, which only the
//! broker and the threads that it starts share. Whoever else needs one asks the broker.
//!
//! ```text
//!   threads of the program ──call──► broker ──starts──► threads that serve faults
//!   the program's table                    a table of our own
//! ```
//! What the broker runs takes no lock of the pager, since who asks may hold it, and never waits for a
//! fault of its own.

use largesse_pages::descriptors;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A thread with a table of descriptors of its own. It ends with the process.
#[derive(Debug, Default)]
pub struct Broker {
    /// Whoever asks has it until there is an answer.
    turn: Mutex<()>,
    desk: Mutex<Option<Task>>,
    asked: Condvar,
    answered: Condvar,
    thread: AtomicU32,
}

/// Something to run, on the stack of the thread that waits for it.
#[derive(Debug)]
struct Task(Work<'static>);

type Work<'a> = *mut (dyn FnMut() + Send + 'a);

// SAFETY: what is pointed to is `Send`, and its owner waits.
unsafe impl Send for Task {}

/// Nobody asks, and nothing runs.
#[derive(Debug)]
pub(crate) struct Idle<'a> {
    _turn: MutexGuard<'a, ()>,
    _desk: MutexGuard<'a, Option<Task>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Broker {
    /// A broker with an empty table.
    pub fn start() -> io::Result<Arc<Broker>> {
        let broker = Arc::new(Broker::default());
        broker.start_thread()?;
        Ok(broker)
    }

    /// Its thread, in a process that has none: at first, and in a forked child.
    pub(crate) fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let broker = Arc::clone(self);
        crate::engine::spawn(c"largesse-broker", move || broker.work())?;
        let thread = self.call(|| own_table().map(|()| largesse_pages::thread_id()))?;
        self.thread.store(thread, Ordering::Relaxed); // Relaxed: who forks next has seen this return
        Ok(())
    }

    fn work(&self) -> ! {
        let mut desk = lock(&self.desk);
        loop {
            if let Some(Task(task)) = &*desk {
                // SAFETY: whoever put it there waits in `call` until the desk is empty.
                unsafe { (**task)() };
                *desk = None;
                self.answered.notify_one();
            }
            desk = self.asked.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Runs `work` on the broker's thread, where our descriptors are, and returns what it returns.
    pub fn call<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let _turn = lock(&self.turn);
        let (mut work, mut answer) = (Some(work), None);
        let mut task = || answer = work.take().map(|work| work());
        let task: Work<'_> = &raw mut task;
        // SAFETY: only the lifetime changes. The pointer is gone from the desk, for good, when the
        // loop below ends, and `task` lives until then.
        let task = Task(unsafe { core::mem::transmute::<Work<'_>, Work<'static>>(task) });
        let mut desk = lock(&self.desk);
        *desk = Some(task);
        self.asked.notify_one();
        while desk.is_some() {
            desk = self.answered.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
        drop(desk);
        answer.unwrap_or_else(|| unreachable!("the desk is empty once the work is done"))
    }

    /// Waits until nobody asks, and lets nobody: for a fork. What is dropped later, on either side,
    /// leaves it as it should be.
    pub(crate) fn hold(&self) -> Idle<'_> {
        Idle { _turn: lock(&self.turn), _desk: lock(&self.desk) }
    }

    /// The number of its thread.
    pub(crate) fn thread(&self) -> u32 {
        self.thread.load(Ordering::Relaxed)
    }
}

/// An empty table for this thread and those it starts. Numbers 0 to 2 stay taken: what is meant for a
/// standard stream must not end up in a store.
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
        // SAFETY: this thread has used none of them; the one of the folder itself is closed already.
        unsafe { libc::close(number) };
    }
    Ok(())
}

/// Upper bound of the numbers of this process's descriptors: its hard limit, and at most 2^20.
fn most_descriptors() -> libc::c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` has room for the answer.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    libc::c_int::try_from(limit.rlim_max.min(1 << 20)).unwrap_or(1 << 20)
}

/// For a last message: the standard error of the program becomes that of this table.
pub fn borrow_stderr() {
    // The first thread may have ended; any other one of the program will do. Ours have no file there.
    let of_another = || {
        let threads = std::fs::read_dir("/proc/self/task").ok()?.flatten();
        threads
            .filter_map(|thread| {
                let path = thread.path().join("fd/2");
                let file = std::fs::read_link(&path).ok()?;
                let number = thread.file_name().to_str()?.parse().ok()?;
                let is_file = !file.to_string_lossy().starts_with("anon_inode:");
                // What another user opened for the program cannot be opened again.
                let again = |_| open(&path, libc::O_WRONLY | libc::O_APPEND).ok();
                is_file.then(|| descriptors::of_thread(number, 2).map_or_else(again, Some))?
            })
            .next()
    };
    if let Some(fd) = descriptors::of_first_thread(2).ok().or_else(of_another) {
        // SAFETY: our own table; whoever calls this has nothing else to say there.
        unsafe { libc::dup2(fd, 2) };
    }
}

/// Opens what another thread has, by its name below `/proc`.
pub(crate) fn open(path: &std::path::Path, flags: libc::c_int) -> io::Result<libc::c_int> {
    use std::os::unix::ffi::OsStrExt as _;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::open(name.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOCTTY) };
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

#[cfg(test)]
mod tests;
