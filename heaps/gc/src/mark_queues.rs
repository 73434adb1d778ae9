//! Work that markers leave for each other, and how they notice together that nothing is left.
//!
//! Each worker has a stack of its own, which nobody else sees, and a *shelf*. A worker that sees others idle
//! puts the older half of its stack there; who has nothing takes half of a shelf. A worker says it is idle only
//! when its stack and its shelf are empty, and only a worker that is not idle fills its shelf: so once all
//! are idle there is no work, and never will be.

use crate::sync::{AtomicUsize, Mutex, Ordering, lock, pause};

/// A worker's surplus.
#[derive(Debug)]
struct Shelf<T> {
    items: Mutex<Vec<T>>,
    /// A hint, so that looking takes no lock.
    len: AtomicUsize,
}

/// The shelves of all workers.
#[derive(Debug)]
pub(crate) struct Shelves<T> {
    shelves: Vec<Shelf<T>>,
    idle: AtomicUsize,
}

impl<T> Shelves<T> {
    pub(crate) fn new(workers: usize) -> Shelves<T> {
        let shelf = |_| Shelf { items: Mutex::new(Vec::new()), len: AtomicUsize::new(0) };
        Shelves { shelves: (0..workers).map(shelf).collect(), idle: AtomicUsize::new(0) }
    }

    /// Whether somebody waits for work and `worker` has put none on its shelf.
    #[inline]
    pub(crate) fn wants(&self, worker: usize) -> bool {
        // Relaxed: a hint.
        self.idle.load(Ordering::Relaxed) > 0 && self.shelves[worker].len.load(Ordering::Relaxed) == 0
    }

    /// Leave the older half of a stack to others.
    pub(crate) fn leave(&self, worker: usize, stack: &mut Vec<T>) {
        self.put(worker, stack.drain(..stack.len() / 2));
    }

    /// Leave work to others.
    pub(crate) fn put(&self, worker: usize, work: impl Iterator<Item = T>) {
        let shelf = &self.shelves[worker];
        let mut items = lock(&shelf.items);
        items.extend(work);
        // Release: pairs with the Acquire in `take`.
        shelf.len.store(items.len(), Ordering::Release);
    }

    /// Wait for work. `false`: nobody has any, the work is done.
    pub(crate) fn get(&self, worker: usize, stack: &mut Vec<T>) -> bool {
        let workers = self.shelves.len();
        loop {
            // One's own first: it is not left to others when one goes idle.
            if (0..workers).any(|step| self.take((worker + step) % workers, step == 0, stack)) {
                return true;
            }
            // AcqRel, here and below: whoever sees that all are idle sees everything that was marked.
            self.idle.fetch_add(1, Ordering::AcqRel);
            loop {
                if self.idle.load(Ordering::Acquire) == workers {
                    return false;
                }
                // Acquire: pairs with the Release in `put`.
                if self.shelves.iter().any(|shelf| shelf.len.load(Ordering::Acquire) > 0) {
                    self.idle.fetch_sub(1, Ordering::AcqRel);
                    break;
                }
                pause();
            }
        }
    }

    /// Take from a shelf: everything from one's own, half of another's.
    fn take(&self, from: usize, own: bool, stack: &mut Vec<T>) -> bool {
        let shelf = &self.shelves[from];
        // Acquire: pairs with the Release in `put`.
        if shelf.len.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut items = lock(&shelf.items);
        let keep = if own { 0 } else { items.len() / 2 };
        let some = items.len() > keep;
        stack.extend(items.drain(keep..));
        // Relaxed: whoever sees an older length finds out under the lock.
        shelf.len.store(items.len(), Ordering::Relaxed);
        some
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicUsize as Count;

    /// An item of work is how many more it makes.
    fn work(shelves: &Shelves<u32>, worker: usize, done: &Count, stack: &mut Vec<u32>) {
        loop {
            while let Some(item) = stack.pop() {
                done.fetch_add(1, Ordering::Relaxed);
                stack.extend((0..item).map(|_| 0));
                if shelves.wants(worker) {
                    shelves.leave(worker, stack);
                }
            }
            if !shelves.get(worker, stack) {
                return;
            }
        }
    }

    // Seen not to end when a worker goes idle before it looks at its own shelf, and when one that comes back stays
    // counted as idle.
    #[test]
    fn no_worker_leaves_while_there_is_work() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let shelves = Arc::new(Shelves::new(2));
            let done = Arc::new(Count::new(0));
            let other = {
                let (shelves, done) = (shelves.clone(), done.clone());
                loom::thread::spawn(move || work(&shelves, 1, &done, &mut Vec::new()))
            };
            work(&shelves, 0, &done, &mut vec![2]);
            // Whoever leaves, leaves nothing behind.
            assert!(shelves.shelves.iter().all(|shelf| lock(&shelf.items).is_empty()));
            other.join().unwrap();
            assert_eq!(done.load(Ordering::Relaxed), 3);
        });
    }
}
