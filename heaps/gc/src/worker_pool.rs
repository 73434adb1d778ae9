//! Implements the pool of worker threads that mark and sweep.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A job that every worker runs, called with the worker's number.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

#[derive(Default)]
struct PoolState {
    /// The current job. Its lifetime is erased: [`run`](WorkerPool::run) returns only when no worker uses it.
    job: Option<Job<'static>>,
    /// Number of jobs started to date.
    turn: u64,
    /// Number of helper threads that still run the current job.
    busy: usize,
    /// The payload of a panic in a helper thread.
    panic: Option<Box<dyn Any + Send>>,
    quit: bool,
}

#[derive(Default)]
struct PoolShared {
    state: Mutex<PoolState>,
    begin: Condvar,
    done: Condvar,
}

/// The collecting thread and its helper threads, which sleep between jobs.
pub(crate) struct WorkerPool {
    shared: Arc<PoolShared>,
    helpers: Vec<JoinHandle<()>>,
}

impl core::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("WorkerPool").field("workers", &self.workers()).finish()
    }
}

impl WorkerPool {
    /// Creates a pool of at most `workers` workers; fewer when the system refuses threads.
    pub(crate) fn new(workers: usize) -> WorkerPool {
        let shared = Arc::new(PoolShared::default());
        let helper = |worker| {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("largesse-gc".into());
            thread.spawn(move || help(&shared, worker)).ok()
        };
        let helpers = (1..workers).map_while(helper).collect();
        WorkerPool { shared, helpers }
    }

    /// Returns the number of workers, including the caller of [`run`](WorkerPool::run).
    pub(crate) fn workers(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Runs `job` in every worker, in the caller as number 0, and returns when all are done. Calls must not overlap.
    pub(crate) fn run(&self, job: Job<'_>) {
        // SAFETY: `end` waits until no helper runs the job, before its borrows end.
        let forever = unsafe { core::mem::transmute::<Job<'_>, Job<'static>>(job) };
        {
            let mut state = self.shared.lock();
            state.job = Some(forever);
            state.turn += 1;
            state.busy = self.helpers.len();
            self.shared.begin.notify_all();
        }
        let end = JobEnd(&self.shared);
        job(0);
        drop(end);
        if let Some(panic) = self.shared.lock().panic.take() {
            resume_unwind(panic);
        }
    }
}

/// Waits for the end of a job when dropped, also during a panic.
struct JobEnd<'a>(&'a PoolShared);

impl Drop for JobEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while state.busy > 0 {
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
    }
}

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn help(shared: &PoolShared, worker: usize) {
    let mut turn = 0;
    loop {
        let job = {
            let mut state = shared.lock();
            while state.turn == turn && !state.quit {
                state = shared.begin.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.quit {
                return;
            }
            turn = state.turn;
            state.job
        };
        let result = catch_unwind(AssertUnwindSafe(|| job.map(|job| job(worker))));
        let mut state = shared.lock();
        state.panic = state.panic.take().or(result.err());
        state.busy -= 1;
        if state.busy == 0 {
            shared.done.notify_all();
        }
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shared.lock().quit = true;
        self.shared.begin.notify_all();
        for helper in self.helpers.drain(..) {
            // A helper cannot panic outside of a job.
            let _ = helper.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_worker_runs_each_job_once() {
        let pool = WorkerPool::new(4);
        let done: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        for turn in 1..=100 {
            pool.run(&|worker| _ = done[worker].fetch_add(1, Ordering::Relaxed));
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == turn));
        }
    }

    #[test]
    fn panic_of_helper_reaches_caller() {
        let pool = WorkerPool::new(2);
        for worker in [0, 1] {
            let job = |it: usize| assert!(it != worker, "at work");
            assert!(catch_unwind(AssertUnwindSafe(|| pool.run(&job))).is_err(), "worker {worker}");
        }
        pool.run(&|_| ());
    }
}
