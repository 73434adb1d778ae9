//! Implements the thread pool: workers are created before there is work for them.

use super::lock;
use super::wait::PIECE;
use super::worker::{BUSY, IDLE, Worker};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};

/// Holds the workers; the free ones are queued, oldest first.
#[derive(Default)]
pub(crate) struct ThreadPool {
    free: Mutex<VecDeque<Arc<Worker>>>,
    freed: Condvar,
    all: Mutex<Vec<Arc<Worker>>>,
}

impl ThreadPool {
    pub(crate) fn add(&self, worker: Arc<Worker>) {
        lock(&self.all).push(Arc::clone(&worker));
        self.give_back(worker);
    }

    /// Returns a worker to the pool, unless it is there already or has work.
    pub(crate) fn give_back(&self, worker: Arc<Worker>) {
        let mut free = lock(&self.free);
        let taken = worker.state.load(Ordering::Acquire) != IDLE;
        if taken || free.iter().any(|it| Arc::ptr_eq(it, &worker)) {
            return;
        }
        free.push_back(worker);
        self.freed.notify_one();
    }

    /// Returns idle workers to the pool after Ctrl-C, as the thread that should fetch a result may have been
    /// interrupted. A result can be fetched until its worker gets other work.
    pub(crate) fn reclaim(&self) {
        self.workers().into_iter().for_each(|worker| self.give_back(worker));
    }

    /// Returns the number of workers that have work.
    pub(crate) fn busy(&self) -> usize {
        lock(&self.all).iter().filter(|it| it.state.load(Ordering::Acquire) == BUSY).count()
    }

    pub(crate) fn workers(&self) -> Vec<Arc<Worker>> {
        lock(&self.all).clone()
    }

    pub(crate) fn free(&self) -> Vec<Arc<Worker>> {
        lock(&self.free).iter().map(Arc::clone).collect()
    }

    /// Waits up to [`PIECE`] for a free worker and takes it.
    pub(crate) fn take_for_a_while(&self) -> Option<Arc<Worker>> {
        let free = lock(&self.free);
        let (mut free, _) = self
            .freed
            .wait_timeout_while(free, PIECE, |free| free.is_empty())
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let worker = free.pop_front()?;
        worker.state.store(BUSY, Ordering::Release);
        // Clears the completion of a reclaimed worker.
        worker.done.try_wait();
        Some(worker)
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }
}
