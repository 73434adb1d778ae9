//! Faults that come as a signal and are served by the handler thread, because only our own threads have the store's descriptors.

use crate::buffer::Buffer;
use crate::lock::{FAULTS, RankedMutex};
use crate::page::Touch;
use largesse_policy::MAX_TRANSFER;
use std::collections::VecDeque;
use std::sync::Condvar;
use std::time::Duration;

/// Faults for the thread that fills.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    faults: RankedMutex<Faults, FAULTS>,
    /// Somebody asks.
    asked: Condvar,
    /// Some were served.
    served: Condvar,
    /// For threads that serve faults on the processor of who waits.
    buffers: RankedMutex<Vec<Buffer>, FAULTS>,
}

#[derive(Debug, Default)]
struct Faults {
    waiting: VecDeque<Touch>,
    /// So many have come, and so many were served, in their order.
    come: u64,
    served: u64,
}

impl FaultQueue {
    /// The next fault; what was handed out before has been served.
    pub(crate) fn next(&self) -> Option<Touch> {
        let mut faults = self.faults.lock();
        let served = faults.come - faults.waiting.len() as u64;
        if faults.served != served {
            faults.served = served;
            self.served.notify_all();
        }
        faults.waiting.pop_front()
    }

    /// Sleeps until there is one, at most so long.
    pub(crate) fn wait(&self, most: Duration) {
        let faults = self.faults.lock();
        if faults.waiting.is_empty() {
            drop(faults.wait_at_most(&self.asked, most));
        }
    }

    /// Has a fault served by the thread that fills.
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

    pub(crate) fn buffer(&self) -> Option<Buffer> {
        let free = self.buffers.lock().pop();
        free.or_else(|| Buffer::on_cpu(MAX_TRANSFER))
    }

    pub(crate) fn give_back(&self, buffer: Buffer) {
        self.buffers.lock().push(buffer);
    }
}
