//! Faults that the kernel reports as signals and the handler thread serves, because only the pager's own threads have
//! the store's descriptors.

use crate::buffer::Buffer;
use crate::lock::{FAULTS, RankedGuard, RankedMutex};
use crate::page::Touch;
use largesse_policy::MAX_TRANSFER;
use std::collections::VecDeque;
use std::sync::Condvar;
use std::time::Duration;

/// Hands faults of other threads to the handler thread, which serves them in order.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    faults: RankedMutex<Faults, FAULTS>,
    /// Notified when a fault is added.
    asked: Condvar,
    /// Notified when the handler thread has served faults.
    served: Condvar,
}

/// The lock of the fault queue, held.
pub(crate) type FaultsGuard<'a> = RankedGuard<'a, Faults, FAULTS>;

/// Everything that the lock of the fault queue guards.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    waiting: VecDeque<Touch>,
    /// Number of faults that were added since the start.
    come: u64,
    /// Number of faults that were served since the start, in the order in which they were added.
    served: u64,
    /// Unused buffers of threads that serve their own faults, and of the on-CPU handler.
    buffers: Vec<Buffer>,
}

impl FaultQueue {
    /// Returns the next fault. Marks the faults that it returned before as served.
    pub(crate) fn next(&self) -> Option<Touch> {
        let mut faults = self.faults.lock();
        let served = faults.come - faults.waiting.len() as u64;
        if faults.served != served {
            faults.served = served;
            self.served.notify_all();
        }
        faults.waiting.pop_front()
    }

    /// Sleeps until a fault is added, for at most the time `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let faults = self.faults.lock();
        if faults.waiting.is_empty() {
            drop(faults.wait_at_most(&self.asked, most));
        }
    }

    /// Has the handler thread serve a fault, and waits until it has.
    pub(crate) fn ask(&self, touch: Touch) {
        let mut faults = self.faults.lock();
        faults.waiting.push_back(touch);
        faults.come += 1;
        let own = faults.come;
        self.asked.notify_one();
        while faults.served < own {
            faults = faults.wait(&self.served);
        }
    }

    /// Takes an unused buffer, or makes one. Returns `None` if memory is short.
    pub(crate) fn buffer(&self) -> Option<Buffer> {
        let free = self.faults.lock().buffers.pop();
        free.or_else(|| Buffer::on_cpu(MAX_TRANSFER))
    }

    /// Gives a buffer back, for the next thread that needs one.
    pub(crate) fn give_back(&self, buffer: Buffer) {
        self.faults.lock().buffers.push(buffer);
    }

    /// Waits until no thread adds or takes a fault or a buffer, and lets none do it until the guard is dropped: for a
    /// fork. The caller has closed the gate.
    pub(crate) fn hold(&self) -> FaultsGuard<'_> {
        self.faults.lock()
    }

    #[cfg(test)]
    pub(crate) fn try_hold(&self) -> Option<FaultsGuard<'_>> {
        self.faults.try_lock()
    }
}
