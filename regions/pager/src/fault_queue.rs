//! Faults that come as a signal and are served by the handler thread, because only our own threads have the store's
//! descriptors.

use crate::buffer::Buffer;
use crate::lock::{FAULTS, RankedMutex};
use crate::page::Touch;
use largesse_policy::MAX_TRANSFER;
use std::collections::VecDeque;
use std::sync::Condvar;
use std::time::Duration;

/// Faults for the handler thread.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    faults: RankedMutex<Faults, FAULTS>,
    /// Notified of each fault.
    asked: Condvar,
    /// Notified when faults were served.
    served: Condvar,
    /// Unused buffers of threads that serve their own faults.
    buffers: RankedMutex<Vec<Buffer>, FAULTS>,
}

#[derive(Debug, Default)]
struct Faults {
    waiting: VecDeque<Touch>,
    /// Number of faults since the start.
    come: u64,
    /// Number of them that were served, in the same order.
    served: u64,
}

impl FaultQueue {
    /// Returns the next fault. The caller has served those that it got before.
    pub(crate) fn next(&self) -> Option<Touch> {
        let mut faults = self.faults.lock();
        let served = faults.come - faults.waiting.len() as u64;
        if faults.served != served {
            faults.served = served;
            self.served.notify_all();
        }
        faults.waiting.pop_front()
    }

    /// Sleeps until there is a fault, at most for the time `most`.
    pub(crate) fn wait(&self, most: Duration) {
        let faults = self.faults.lock();
        if faults.waiting.is_empty() {
            drop(faults.wait_at_most(&self.asked, most));
        }
    }

    /// Has a fault served by the handler thread, and waits for that.
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

    /// Takes an unused buffer, or makes one. `None` without memory.
    pub(crate) fn buffer(&self) -> Option<Buffer> {
        let free = self.buffers.lock().pop();
        free.or_else(|| Buffer::on_cpu(MAX_TRANSFER))
    }

    /// Returns a buffer for the next thread.
    pub(crate) fn give_back(&self, buffer: Buffer) {
        self.buffers.lock().push(buffer);
    }
}
