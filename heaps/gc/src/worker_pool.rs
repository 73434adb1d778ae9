//! The collector's threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// A job of all workers; each is told its number.
type Job<'a> = &'a (dyn Fn(usize) + Sync);

#[derive(Default)]
struct State {
    /// With its true lifetime forgotten: see `run`.
    job: Option<Job<'static>>,
    /// How many jobs there were.
    turn: u64,
    /// Helpers that are not done with this one.
    busy: usize,
    /// What a helper's panic said.
    panic: Option<Box<dyn Any + Send>>,
    quit: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    begin: Condvar,
    done: Condvar,
}

/// Whoever collects, and helpers that sleep in between.
pub(crate) struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

impl core::fmt::Debug for Crew {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Crew").field("workers", &self.workers()).finish()
    }
}

impl Crew {
    /// At most `workers` workers: fewer when the system gives no more threads.
    pub(crate) fn new(workers: usize) -> Crew {
        let shared = Arc::new(Shared::default());
        let helper = |worker| {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("largesse-gc".into());
            thread.spawn(move || help(&shared, worker)).ok()
        };
        let helpers = (1..workers).map_while(helper).collect();
        Crew { shared, helpers }
    }

    /// Workers there are, the caller of [`run`](Crew::run) among them.
    pub(crate) fn workers(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Let every worker do `job`, the caller as number 0. One at a time.
    pub(crate) fn run(&self, job: Job<'_>) {
        // SAFETY: `_end` waits until no helper is in the job, before what it borrows can go.
        let forever = unsafe { core::mem::transmute::<Job<'_>, Job<'static>>(job) };
        {
            let mut state = self.shared.lock();
            state.job = Some(forever);
            state.turn += 1;
            state.busy = self.helpers.len();
            self.shared.begin.notify_all();
        }
        let end = End(&self.shared);
        job(0);
        drop(end);
        if let Some(panic) = self.shared.lock().panic.take() {
            resume_unwind(panic);
        }
    }
}

/// The end of a job, also by a panic.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while state.busy > 0 {
            state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.job = None;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn help(shared: &Shared, worker: usize) {
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

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.lock().quit = true;
        self.shared.begin.notify_all();
        for helper in self.helpers.drain(..) {
            // It cannot panic outside of a job.
            let _ = helper.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_worker_does_each_job_once() {
        let crew = Crew::new(4);
        let done: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        for turn in 1..=100 {
            crew.run(&|worker| _ = done[worker].fetch_add(1, Ordering::Relaxed));
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == turn));
        }
    }

    #[test]
    fn a_panic_of_a_helper_is_one_of_the_caller() {
        let crew = Crew::new(2);
        for worker in [0, 1] {
            let job = |it: usize| assert!(it != worker, "at work");
            assert!(catch_unwind(AssertUnwindSafe(|| crew.run(&job))).is_err(), "worker {worker}");
        }
        crew.run(&|_| ());
    }
}
