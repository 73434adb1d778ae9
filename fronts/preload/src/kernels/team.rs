//! Runs the pool of worker threads that compute on long vectors.
//!
//! The threads are started by the first long call and wait for the next. A forked child, which has none of its parent's
//! threads, starts its own: a pool belongs to one process, and no other process waits for it.

use super::threads;
use crate::guard::outside;
use crate::last_thread;
use crate::signals::Blocked;
use core::ffi::c_int;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use largesse_kernels::Team;
use largesse_machine::{pin, process, service};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// Lists the signals that an instruction of the thread itself raises.
const OWN: [c_int; 6] =
    [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL, libc::SIGSYS, libc::SIGTRAP];

/// A team whose size is the number that [`threads::threads`] returns.
#[derive(Debug)]
pub(super) struct Processors;

impl Team for Processors {
    fn size(&self) -> usize {
        let _blocked = Blocked::handlers();
        threads::threads(worker)
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        WorkerPool::here().run(members, work);
    }
}

/// Returns the kernel's identifier of this process's first worker thread; `None` while there is none.
pub(super) fn worker() -> Option<u32> {
    WorkerPool::found()?.worker.get().copied()
}

/// A pool of threads of one process that wait for work.
#[derive(Debug)]
struct WorkerPool {
    process: u32,
    /// Whether a call uses the threads.
    busy: AtomicBool,
    /// Kernel's identifier of the first thread.
    worker: OnceLock<u32>,
    board: Mutex<PoolState>,
    /// Is notified when there is new work.
    begin: Condvar,
    /// Is notified when all threads have finished.
    done: Condvar,
}

/// State that the calling thread and the worker threads share.
#[derive(Debug)]
struct PoolState {
    /// Number of calls that have begun.
    calls: u64,
    work: Option<Work>,
    /// Number of threads that were started: members 1 to `threads`.
    threads: usize,
    /// Number of members of the present call, with the calling thread; only threads with smaller numbers take part.
    members: usize,
    /// Number of threads that have not finished the present call.
    left: usize,
    /// The processors of the process at the present call, on which its members run.
    processors: pin::Mask,
}

/// Points to the caller's function, which lives until `left` is 0.
#[derive(Clone, Copy, Debug)]
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: a reference to a value that is `Sync`, used while its owner waits.
unsafe impl Send for Work {}

static POOL: AtomicPtr<WorkerPool> = AtomicPtr::new(null_mut());

impl WorkerPool {
    /// Returns this process's pool, if it has one. The parent's pool is ignored: its lock may be held by a thread that
    /// does not exist in this process.
    fn found() -> Option<&'static WorkerPool> {
        // Acquire: pairs with the exchange in `here`, so that the fields are seen.
        // SAFETY: a pool in `POOL` is never freed.
        let found = unsafe { POOL.load(Ordering::Acquire).as_ref() };
        found.filter(|pool| pool.process == std::process::id())
    }

    /// Returns this process's pool, and creates it if there is none.
    fn here() -> &'static WorkerPool {
        let found = POOL.load(Ordering::Acquire);
        if let Some(pool) = WorkerPool::found() {
            return pool;
        }
        let _blocked = Blocked::handlers();
        let new = Box::into_raw(Box::new(WorkerPool {
            process: std::process::id(),
            busy: AtomicBool::new(false),
            worker: OnceLock::new(),
            board: Mutex::new(PoolState {
                calls: 0,
                work: None,
                threads: 0,
                members: 0,
                left: 0,
                processors: process::mask(None),
            }),
            begin: Condvar::new(),
            done: Condvar::new(),
        }));
        // AcqRel: pairs with the load in `found`, so that a thread that finds a pool sees its fields.
        match POOL.compare_exchange(found, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: no other thread has seen `new`, and `other` is never freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }

    fn run(&'static self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        // Acquire: pairs with the release in `Finish`, so that the next call sees the end of this one.
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
        let processors = process::mask(worker());
        let mut board = self.board();
        board.processors = processors;
        let threads = board.threads.min(members - 1);
        (board.calls, board.work) = (board.calls + 1, Some(Work(shared)));
        (board.members, board.left) = (threads + 1, threads);
        drop(board);
        self.begin.notify_all();
        let finish = Finish(self);
        work(0);
        // Members without a thread of their own.
        (threads + 1..members).for_each(work);
        drop(finish);
    }

    /// Starts threads until there are enough for `members`, or the system refuses. Called only by the thread that has
    /// set `busy`.
    fn grow(&'static self, members: usize) {
        const STACK: usize = 128 << 10;
        let PoolState { threads, calls, .. } = *self.board();
        if threads + 1 >= members {
            return;
        }
        last_thread::watch();
        for member in threads + 1..members {
            let work = move || {
                self.worker.get_or_init(largesse_pages::thread_id);
                self.serve(member, calls);
            };
            // The members receive the signals of their own instructions, which far pages may raise. Starting a thread
            // allocates from the C library, which may call us.
            if outside(|| service::start(c"largesse", STACK, &OWN, work)).is_err() {
                break;
            }
            self.board().threads = member;
        }
    }

    /// Runs the loop of a worker thread that was started when `seen` calls had begun.
    fn serve(&self, member: usize, mut seen: u64) {
        // `service` has put this thread on the processors that the process had then.
        let mut processors = process::mask(None);
        loop {
            let mut board = self.board();
            while board.calls == seen {
                board = self.begin.wait(board).unwrap_or_else(PoisonError::into_inner);
            }
            seen = board.calls;
            if member >= board.members {
                continue;
            }
            let work = board.work;
            let changed = board.processors != processors;
            if changed {
                processors = board.processors;
            }
            drop(board);
            if changed {
                process::adopt(&processors);
            }
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

    fn board(&self) -> MutexGuard<'_, PoolState> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that waits for all members of the pool when it is dropped, also during a panic.
struct Finish(&'static WorkerPool);

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
    fn each_member_works_once_per_call() {
        let pool = WorkerPool::here();
        let counts = [const { AtomicUsize::new(0) }; 4];
        for _ in 0..100 {
            // A call with fewer members, then one with all.
            pool.run(2, &|_| ());
            pool.run(4, &|member| {
                counts[member].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert_eq!(counts.map(AtomicUsize::into_inner), [100; 4]);
    }

    #[test]
    fn calls_on_a_busy_pool_complete() {
        let pool = WorkerPool::here();
        let count = AtomicUsize::new(0);
        pool.run(4, &|_| {
            pool.run(4, &|_| {
                count.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert_eq!(count.into_inner(), 16);
    }
}
