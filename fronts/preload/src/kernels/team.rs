//! The threads of this process that work on long vectors.
//!
//! They are made at the first long call and wait for the next. A forked child, which has none of its
//! parent's threads, makes its own: a crew belongs to one process, and is never waited for in another.

use crate::guard::outside;
use crate::signals::Blocked;
use crate::start;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use largesse_kernels::Team;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

/// Signals that say what the thread itself has done.
const OWN: [c_int; 6] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];

/// As many threads as `OMP_NUM_THREADS` says, or as there are processors for this process.
#[derive(Debug)]
pub(super) struct Processors;

impl Team for Processors {
    fn size(&self) -> usize {
        static SIZE: AtomicUsize = AtomicUsize::new(0);
        match SIZE.load(Ordering::Relaxed) {
            0 => {
                let all = || std::thread::available_parallelism().map_or(1, usize::from);
                let size = start::options().threads.unwrap_or_else(all);
                SIZE.store(size, Ordering::Relaxed);
                size
            }
            size => size,
        }
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        Crew::here(members).run(work);
    }
}

/// Threads that wait for work.
#[derive(Debug)]
struct Crew {
    process: u32,
    size: usize,
    /// Somebody's call has them.
    busy: AtomicBool,
    started: Once,
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
    /// Threads that were made.
    threads: usize,
    /// Those that have not finished this turn.
    left: usize,
}

/// The caller's function, which lives until `left` is 0.
#[derive(Clone, Copy, Debug)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: a reference to something that is `Sync`, used while its owner waits.
unsafe impl Send for Work {}

static CREW: AtomicPtr<Crew> = AtomicPtr::new(null_mut());

impl Crew {
    /// This process's. One of the parent's is left alone: its lock may be held by a thread that is not here.
    fn here(size: usize) -> &'static Crew {
        let process = std::process::id();
        let found = CREW.load(Ordering::Acquire);
        // SAFETY: what is in `CREW` is never freed.
        if let Some(crew) = unsafe { found.as_ref() }
            && crew.process == process
        {
            return crew;
        }
        let new = Box::into_raw(Box::new(Crew {
            process,
            size,
            busy: AtomicBool::new(false),
            started: Once::new(),
            board: Mutex::default(),
            begin: Condvar::new(),
            done: Condvar::new(),
        }));
        // AcqRel: pairs with the load above, so that who finds a crew sees its fields.
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

    fn run(&'static self, work: &(dyn Fn(usize) + Sync)) {
        // Acquire and the release below: the next call sees this one's end.
        if self.busy.swap(true, Ordering::Acquire) {
            return (0..self.size).for_each(work);
        }
        self.started.call_once(|| self.start());
        // SAFETY: only the lifetime changes; `Finish` waits for every member before `work` can end.
        let shared =
            unsafe { core::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        let mut board = self.board();
        (board.turn, board.work, board.left) = (board.turn + 1, Some(Work(shared)), board.threads);
        let threads = board.threads;
        drop(board);
        self.begin.notify_all();
        let finish = Finish(self);
        work(0);
        // Those for whom there is no thread.
        (threads + 1..self.size).for_each(work);
        drop(finish);
    }

    fn start(&'static self) {
        // The crew receives none of the program's signals, but those that a thread brings on itself: a far page may.
        let _blocked = Blocked::all_but(&OWN);
        for member in 1..self.size {
            let thread = std::thread::Builder::new().name("largesse".into()).stack_size(128 << 10);
            // Making a thread asks the C library for memory, which may ask us.
            if outside(|| thread.spawn(move || self.serve(member))).is_err() {
                break;
            }
            self.board().threads = member;
        }
    }

    fn serve(&self, member: usize) {
        let mut seen = 0;
        loop {
            let mut board = self.board();
            while board.turn == seen {
                board = self.begin.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
            seen = board.turn;
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

    #[test]
    fn every_member_works_once_in_every_call() {
        let crew = Crew::here(4);
        let counts = [const { AtomicUsize::new(0) }; 4];
        for _ in 0..100 {
            crew.run(&|member| {
                counts[member].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(counts.map(AtomicUsize::into_inner), [100; 4]);
    }

    #[test]
    fn a_call_while_the_crew_is_busy_is_served_all_the_same() {
        let crew = Crew::here(4);
        let count = AtomicUsize::new(0);
        crew.run(&|_| {
            crew.run(&|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(count.into_inner(), 16);
    }
}
