//! Transfers by threads that make blocking calls, where io_uring is absent or forbidden, and for stores that have only
//! blocking calls.

use crate::queue_bytes::QueueBytes;
use crate::transfer::{Completion, Direction, Mechanism, Transfer, TransferQueue};
use crate::{PageStore, StoreError};
use core::ffi::c_int;
use core::ops::Range;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Stack size of a thread, in bytes.
const STACK: usize = 128 << 10;

/// A queue of transfers that threads of its own make.
#[derive(Debug)]
pub struct ThreadQueue {
    shared: Arc<JobQueue>,
    memory: QueueBytes,
    depth: usize,
    in_flight: usize,
    refusal: Option<c_int>,
    /// Room for the completions that one call of `reap` takes from the threads.
    reaped: VecDeque<Completion>,
}

/// The jobs and results of a queue, which its threads share.
#[derive(Debug)]
struct JobQueue {
    jobs: Mutex<Jobs>,
    /// Notified when a job is added.
    job_added: Condvar,
    /// Notified when a job is done.
    job_done: Condvar,
    /// An eventfd that is readable when there are completions.
    event: c_int,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    completions: VecDeque<Completion>,
    closed: bool,
}

/// A transfer to make, with the address of its memory.
#[derive(Debug)]
struct Job {
    transfer: Transfer,
    memory: *mut u8,
}

// SAFETY: the memory belongs to the transfer until it was reaped, whichever thread makes it.
unsafe impl Send for Job {}

impl JobQueue {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for JobQueue {
    fn drop(&mut self) {
        // SAFETY: our own descriptor; the last thread closes it once, in the descriptor table of all of them.
        unsafe { libc::close(self.event) };
    }
}

impl ThreadQueue {
    /// Starts a queue of `depth` transfers with `bytes` bytes of memory, and `depth` threads that use `store`. The
    /// threads share the descriptor table of the calling thread.
    pub fn open<S: PageStore + 'static>(
        store: &Arc<S>,
        bytes: usize,
        depth: usize,
    ) -> io::Result<ThreadQueue> {
        let memory = QueueBytes::new(bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: numbers only.
        let event = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if event < 0 {
            return Err(io::Error::last_os_error());
        }
        let jobs = Jobs {
            waiting: VecDeque::with_capacity(depth),
            completions: VecDeque::with_capacity(depth),
            closed: false,
        };
        let (jobs, job_added, job_done) = (Mutex::new(jobs), Condvar::new(), Condvar::new());
        let shared = Arc::new(JobQueue { jobs, job_added, job_done, event });
        let reaped = VecDeque::with_capacity(depth);
        let queue = ThreadQueue { shared, memory, depth, in_flight: 0, refusal: None, reaped };
        for _ in 0..depth {
            let (shared, store) = (Arc::clone(&queue.shared), Arc::clone(store));
            largesse_machine::service::start(c"largesse-io", STACK, &[], move || work(&shared, &*store))?;
        }
        Ok(queue)
    }

    /// Notes that threads make the transfers because the kernel refused io_uring with the error `refusal`.
    #[must_use]
    pub fn instead_of_io_uring(mut self, refusal: Option<c_int>) -> ThreadQueue {
        self.refusal = refusal;
        self
    }
}

/// Makes the transfers of a queue until it is closed, in one of its threads.
fn work(shared: &JobQueue, store: &dyn PageStore) {
    let mut jobs = shared.lock();
    while !jobs.closed {
        let Some(job) = jobs.waiting.pop_front() else {
            jobs = shared.job_added.wait(jobs).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(jobs);
        let result = make(store, &job);
        jobs = shared.lock();
        jobs.completions.push_back(Completion { id: job.transfer.id, result });
        shared.job_done.notify_one();
        let one = 1_u64;
        // SAFETY: our own descriptor and eight bytes. It fails only if the counter is full, and is readable then.
        unsafe { libc::write(shared.event, (&raw const one).cast(), size_of::<u64>()) };
    }
}

fn make(store: &dyn PageStore, Job { transfer, memory }: &Job) -> Result<(), StoreError> {
    let (at, len) = (transfer.at, transfer.memory.len());
    match transfer.direction {
        // SAFETY: the memory belongs to this transfer until it was reaped, and the queue waits for that before it ends.
        Direction::Read => store.read(at, unsafe { core::slice::from_raw_parts_mut(*memory, len) }),
        // SAFETY: as above; no thread writes to it.
        Direction::Write => store.write(at, unsafe { core::slice::from_raw_parts(*memory, len) }),
    }
}

impl TransferQueue for ThreadQueue {
    fn mechanism(&self) -> Mechanism {
        Mechanism::Threads
    }

    fn refusal(&self) -> Option<c_int> {
        self.refusal
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    unsafe fn memory(&mut self, range: Range<usize>) -> &mut [u8] {
        // SAFETY: the caller's promise.
        unsafe { self.memory.bytes(range) }
    }

    fn start(&mut self, transfer: Transfer) {
        assert!(transfer.memory.end <= self.memory.len(), "{transfer:?} is outside of the memory");
        self.in_flight += 1;
        let memory = self.memory.address(transfer.memory.start);
        self.shared.lock().waiting.push_back(Job { transfer, memory });
        self.shared.job_added.notify_one();
    }

    fn flush(&mut self) {}

    fn reap(&mut self, wait: Duration, done: &mut dyn FnMut(Completion)) {
        let began = Instant::now();
        let mut jobs = self.shared.lock();
        while jobs.completions.is_empty() && self.in_flight > 0 {
            let left = wait.saturating_sub(began.elapsed());
            if left.is_zero() {
                break;
            }
            let woken = self.shared.job_done.wait_timeout(jobs, left);
            jobs = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.reaped.append(&mut jobs.completions);
        if !self.reaped.is_empty() {
            let mut count = 0_u64;
            // SAFETY: our own descriptor and room for eight bytes; it does not block.
            unsafe { libc::read(self.shared.event, (&raw mut count).cast(), size_of::<u64>()) };
        }
        drop(jobs);
        self.in_flight -= self.reaped.len();
        self.reaped.drain(..).for_each(done);
    }

    fn descriptor(&self) -> Option<c_int> {
        Some(self.shared.event)
    }
}

impl Drop for ThreadQueue {
    /// Waits for the transfers in flight, because they use the queue's memory.
    fn drop(&mut self) {
        while self.in_flight > 0 {
            self.reap(Duration::from_millis(100), &mut |_| {});
        }
        self.shared.lock().closed = true;
        self.shared.job_added.notify_all();
    }
}
