//! A gate through which all threads pass that put pages in flight, so that a fork can wait until no page is in flight.

use crate::lock::{GATE, RankedGuard, RankedMutex};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Condvar;

/// Counts the threads that may put pages in flight. While it is closed, no thread is inside, and threads that want to
/// enter wait.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Number of threads inside.
    inside: RankedMutex<usize, GATE>,
    left: Condvar,
    closing: AtomicBool,
}

/// The presence of one thread inside a gate, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Gate);

/// A closed gate, which opens when this is dropped. Threads that want to enter wait for the lock itself, so that the
/// gate of a forked child is open and empty once the child's copy of this is dropped.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    gate: &'a Gate,
    _inside: RankedGuard<'a, usize, GATE>,
}

impl Gate {
    /// Waits until the gate is open, and enters.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let mut inside = self.inside.lock();
        while self.is_closing() {
            inside = inside.wait(&self.left);
        }
        *inside += 1;
        Inside(self)
    }

    /// Returns whether a thread waits for the gate to be empty. Threads that stay inside for long ask this now and
    /// then, and leave if it is true.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: the lock orders what must be ordered; elsewhere it is a request.
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns whether only the caller's thread is inside.
    pub(crate) fn is_last(&self) -> bool {
        *self.inside.lock() == 1
    }

    /// Closes the gate, and waits until no thread is inside. `wake` wakes threads that sleep inside.
    pub(crate) fn close(&self, wake: impl FnOnce()) -> Closed<'_> {
        self.closing.store(true, Ordering::Relaxed); // Relaxed: see `is_closing`
        wake();
        let mut inside = self.inside.lock();
        while *inside != 0 {
            inside = inside.wait(&self.left);
        }
        Closed { gate: self, _inside: inside }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        *self.0.inside.lock() -= 1;
        if self.0.is_closing() {
            self.0.left.notify_all();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        // The guard is dropped after this: woken threads wait for the lock, and then find the gate open.
        self.gate.closing.store(false, Ordering::Relaxed); // Relaxed: under the lock
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn closed_gate_is_empty_and_opens_again() {
        let (gate, inside, stop) = (Gate::default(), AtomicUsize::new(0), AtomicBool::new(false));
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _inside = gate.enter();
                        inside.fetch_add(1, Ordering::SeqCst);
                        rounds.fetch_add(1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            for _ in 0..300 {
                let closed = gate.close(|| ());
                assert_eq!(inside.load(Ordering::SeqCst), 0);
                let before = rounds.load(Ordering::SeqCst);
                drop(closed);
                while rounds.load(Ordering::SeqCst) == before {
                    std::thread::yield_now();
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
