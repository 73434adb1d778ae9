//! The threads of this process that work on long vectors.
//!
//! They are made at the first long call and wait for the next. A forked child, which has none of its
//! parent's threads, makes its own: a crew belongs to one process, and is never waited for in another.

use super::processors;
use crate::guard::outside;
use crate::last_thread;
use crate::signals::Blocked;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use largesse_kernels::Team;
use largesse_machine::{pin, service};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Signals that say what the thread itself has done.
const OWN: [c_int; 6] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];

/// As many threads as [`processors::threads`] says.
#[derive(Debug)]
pub(super) struct Processors;

impl Team for Processors {
    fn size(&self) -> usize {
        let _blocked = Blocked::handlers();
        processors::threads(worker)
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        Crew::here().run(members, work);
    }
}

/// Returns the kernel's number of this process's first worker thread; `None` while there is none.
pub(super) fn worker() -> Option<u32> {
    Crew::found()?.worker.get().copied()
}

/// Threads that wait for work.
#[derive(Debug)]
struct Crew {
    process: u32,
    /// Somebody's call has them.
    busy: AtomicBool,
    /// The kernel's number of the first thread.
    worker: OnceLock<u32>,
    board: Mutex<Board>,
    /// There is new work.
    begin: Condvar,
    /// All have finished.
    done: Condvar,
}

/// What the members see.
#[derive(Debug, Default)]
struct Board {
    /// Counts the calls.
    turn: u64,
    work: Option<Work>,
    /// Threads that were made: members 1 to `threads`.
    threads: usize,
    /// Members of this turn's call, the calling thread among them; threads from this number on have no part in it.
    members: usize,
    /// Threads that have not finished this turn.
    left: usize,
}

/// The caller's function, which lives until `left` is 0.
#[derive(Clone, Copy, Debug)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: a reference to something that is `Sync`, used while its owner waits.
unsafe impl Send for Work {}

static CREW: AtomicPtr<Crew> = AtomicPtr::new(null_mut());

impl Crew {
    /// Returns this process's, if it has one. One of the parent's is left alone: its lock may be held by a thread that does not
    /// exist here.
    fn found() -> Option<&'static Crew> {
        // Acquire: pairs with the exchange in `here`, so that the fields are seen.
        // SAFETY: what is in `CREW` is never freed.
        let found = unsafe { CREW.load(Ordering::Acquire).as_ref() };
        found.filter(|crew| crew.process == std::process::id())
    }

    /// Returns this process's, made now if it has none.
    fn here() -> &'static Crew {
        let found = CREW.load(Ordering::Acquire);
        if let Some(crew) = Crew::found() {
            return crew;
        }
        let _blocked = Blocked::handlers();
        let new = Box::into_raw(Box::new(Crew {
            process: std::process::id(),
            busy: AtomicBool::new(false),
            worker: OnceLock::new(),
            board: Mutex::default(),
            begin: Condvar::new(),
            done: Condvar::new(),
        }));
        // AcqRel: pairs with the load in `found`, so that who finds a crew sees its fields.
        match CREW.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: nobody has seen it; the other is never freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }

    fn run(&'static self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        // Acquire and the release below: the next call sees this one's end.
        if self.busy.swap(true, Ordering::Acquire) {
            return (0..members).for_each(work);
        }
        {
            let _blocked = Blocked::handlers();
            self.grow(members);
        }
        // SAFETY: only the lifetime changes; `Finish` waits for every member before `work` can end.
        let shared =
            unsafe { core::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        let mut board = self.board();
        let threads = board.threads.min(members - 1);
        (board.turn, board.work) = (board.turn + 1, Some(Work(shared)));
        (board.members, board.left) = (threads + 1, threads);
        drop(board);
        self.begin.notify_all();
        let finish = Finish(self);
        work(0);
        // Those for whom there is no thread.
        (threads + 1..members).for_each(work);
        drop(finish);
    }

    /// Starts threads until there are enough for this many members, or no more can be had. Only the call that has the crew does.
    fn grow(&'static self, members: usize) {
        const STACK: usize = 128 << 10;
        let Board { threads, turn, .. } = *self.board();
        if threads + 1 >= members {
            return;
        }
        last_thread::watch();
        let processors = Arc::new(processors::of_process(worker()));
        for member in threads + 1..members {
            let processors = Arc::clone(&processors);
            let work = move || {
                // The thread that made this one may be bound; a process that was confined since keeps it where it is.
                let _ = pin::thread(&processors);
                self.worker.get_or_init(largesse_pages::thread_id);
                self.serve(member, turn);
            };
            // The members receive the signals that a thread causes itself: a far page may be such a one. Making a
            // thread asks the C library for memory, which may ask us.
            if outside(|| service::start(c"largesse", STACK, &OWN, work)).is_err() {
                break;
            }
            self.board().threads = member;
        }
    }

    /// The life of a thread that was made when `seen` turns had begun.
    fn serve(&self, member: usize, mut seen: u64) {
        loop {
            let mut board = self.board();
            while board.turn == seen {
                board = self.begin.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
            seen = board.turn;
            if member >= board.members {
                continue;
            }
            let work = board.work;
            drop(board);
            if let Some(Work(work)) = work {
                // SAFETY: the caller waits until `left` is 0.
                unsafe { (*work)(member) };
            }
            let mut board = self.board();
            board.left -= 1;
            if board.left == 0 {
                self.done.notify_one();
            }
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for all members, whatever happens.
struct Finish(&'static Crew);

impl Drop for Finish {
    fn drop(&mut self) {
        let mut board = self.0.board();
        while board.left > 0 {
            board = self.0.done.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
        board.work = None;
        drop(board);
        self.0.busy.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    #[test]
    fn every_member_works_once_in_every_call() {
        let crew = Crew::here();
        let counts = [const { AtomicUsize::new(0) }; 4];
        for _ in 0..100 {
            // Fewer, and then all again.
            crew.run(2, &|_| ());
            crew.run(4, &|member| {
                counts[member].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(counts.map(AtomicUsize::into_inner), [100; 4]);
    }

    #[test]
    fn a_call_while_the_crew_is_busy_is_served_all_the_same() {
        let crew = Crew::here();
        let count = AtomicUsize::new(0);
        crew.run(4, &|_| {
            crew.run(4, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(count.into_inner(), 16);
    }
}
