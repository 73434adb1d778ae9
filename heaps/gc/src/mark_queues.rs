//! Implements the shared mark queues: work that markers share, and the detection of its end.
//!
//! Each worker has a private stack and a shared *queue*. A worker that finds others idle moves the older half of its
//! stack to its queue; an idle worker takes half of a queue. A worker counts itself idle only when its stack and its
//! queue are empty, and only a worker that is not idle fills its queue: so once all are idle no work is left, and
//! none can appear.

use crate::sync::{AtomicUsize, Mutex, Ordering, lock, pause};

/// The queue of items that one worker shares with the others.
#[derive(Debug)]
struct MarkQueue<T> {
    items: Mutex<Vec<T>>,
    /// The length, as a hint that is read without the lock.
    len: AtomicUsize,
}

/// The queues of all workers.
#[derive(Debug)]
pub(crate) struct MarkQueues<T> {
    queues: Vec<MarkQueue<T>>,
    idle: AtomicUsize,
}

impl<T> MarkQueues<T> {
    pub(crate) fn new(workers: usize) -> MarkQueues<T> {
        let queue = |_| MarkQueue { items: Mutex::new(Vec::new()), len: AtomicUsize::new(0) };
        MarkQueues { queues: (0..workers).map(queue).collect(), idle: AtomicUsize::new(0) }
    }

    /// Returns whether some worker is idle and the queue of `worker` is empty, so that `worker` should share items.
    #[inline]
    pub(crate) fn wants(&self, worker: usize) -> bool {
        // Relaxed: a hint.
        self.idle.load(Ordering::Relaxed) > 0 && self.queues[worker].len.load(Ordering::Relaxed) == 0
    }

    /// Moves the older half of a stack to the queue of `worker`.
    pub(crate) fn leave(&self, worker: usize, stack: &mut Vec<T>) {
        self.put(worker, stack.drain(..stack.len() / 2));
    }

    /// Adds items to the queue of `worker`.
    pub(crate) fn put(&self, worker: usize, work: impl Iterator<Item = T>) {
        let queue = &self.queues[worker];
        let mut items = lock(&queue.items);
        items.extend(work);
        // Release: pairs with the Acquire in `take`.
        queue.len.store(items.len(), Ordering::Release);
    }

    /// Moves items from any queue to `stack`, waiting until there are some. Returns `false` when all workers are idle,
    /// which means that marking is done.
    pub(crate) fn get(&self, worker: usize, stack: &mut Vec<T>) -> bool {
        let workers = self.queues.len();
        loop {
            // The own queue first: it must be empty before the worker counts itself idle.
            if (0..workers).any(|step| self.take((worker + step) % workers, step == 0, stack)) {
                return true;
            }
            // AcqRel, here and below: a worker that sees all idle also sees every mark.
            self.idle.fetch_add(1, Ordering::AcqRel);
            loop {
                if self.idle.load(Ordering::Acquire) == workers {
                    return false;
                }
                // Acquire: pairs with the Release in `put`.
                if self.queues.iter().any(|queue| queue.len.load(Ordering::Acquire) > 0) {
                    self.idle.fetch_sub(1, Ordering::AcqRel);
                    break;
                }
                pause();
            }
        }
    }

    /// Moves all items of queue `from` to `stack` if it is the worker's own, else half of them. Returns whether there
    /// were any.
    fn take(&self, from: usize, own: bool, stack: &mut Vec<T>) -> bool {
        let queue = &self.queues[from];
        // Acquire: pairs with the Release in `put`.
        if queue.len.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut items = lock(&queue.items);
        let keep = if own { 0 } else { items.len() / 2 };
        let some = items.len() > keep;
        stack.extend(items.drain(keep..));
        // Relaxed: a worker that reads an older length finds out under the lock.
        queue.len.store(items.len(), Ordering::Relaxed);
        some
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize as Count;

    /// Processes items, each of which is the number of further items it creates.
    fn work(queues: &MarkQueues<u32>, worker: usize, done: &Count, stack: &mut Vec<u32>) {
        loop {
            while let Some(item) = stack.pop() {
                done.fetch_add(1, Ordering::Relaxed);
                stack.extend((0..item).map(|_| 0));
                if queues.wants(worker) {
                    queues.leave(worker, stack);
                }
            }
            if !queues.get(worker, stack) {
                return;
            }
        }
    }

    // Seen not to end when a worker counts itself idle before it checks its own queue, and when one that finds work
    // stays counted as idle.
    #[test]
    fn workers_end_without_work() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let queues = Arc::new(MarkQueues::new(2));
            let done = Arc::new(Count::new(0));
            let other = {
                let (queues, done) = (queues.clone(), done.clone());
                loom::thread::spawn(move || work(&queues, 1, &done, &mut Vec::new()))
            };
            work(&queues, 0, &done, &mut vec![2]);
            // No item is left behind.
            assert!(queues.queues.iter().all(|queue| lock(&queue.items).is_empty()));
            other.join().unwrap();
            assert_eq!(done.load(Ordering::Relaxed), 3);
        });
    }
}
