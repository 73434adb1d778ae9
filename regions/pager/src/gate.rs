//! Who serves faults passes here, so that a fork can wait until nobody does.

use crate::lock::{GATE, RankedGuard, RankedMutex};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Condvar;

/// A gate: open, threads go in and out; closed, they wait outside.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Threads that are inside.
    inside: RankedMutex<usize, GATE>,
    left: Condvar,
    closing: AtomicBool,
}

/// A thread is inside.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a Gate);

/// Nobody is inside, and nobody comes in. Whoever wants to waits for the lock itself: so a forked
/// child has the gate as it should be once this is dropped.
#[derive(Debug)]
pub(crate) struct Closed<'a> {
    gate: &'a Gate,
    _inside: RankedGuard<'a, usize, GATE>,
}

impl Gate {
    /// Goes in, when the gate is open.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let mut inside = self.inside.lock();
        while self.is_closing() {
            inside = inside.wait(&self.left);
        }
        *inside += 1;
        Inside(self)
    }

    /// Who is inside for long leaves when this is so.
    pub(crate) fn is_closing(&self) -> bool {
        // Relaxed: the lock orders what must be ordered; elsewhere it is a request.
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns whether only the caller's thread is inside.
    pub(crate) fn is_last(&self) -> bool {
        *self.inside.lock() == 1
    }

    /// Waits until nobody is inside; `wake` makes those go who sleep there.
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
        // The guard is dropped after this: who is woken waits for the lock, and then finds it open.
        self.gate.closing.store(false, Ordering::Relaxed); // Relaxed: under the lock
        self.gate.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn nobody_is_inside_a_closed_gate_and_everybody_comes_in_again() {
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
