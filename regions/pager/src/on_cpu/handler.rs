//! Whether faults are handled on the faulting CPU, and by which thread.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use largesse_machine::{pin, thread};

/// Value of `others` if every fault is of another thread than the one before: the unit of `others`.
const WHOLE: u32 = 1024;
/// Value of `others` from which on several threads are regarded as faulting in turn, so that the on-CPU handler is off.
const MANY: u32 = WHOLE / 8;
/// Number of recent faults over which `others` is averaged.
const RECENT: u32 = 32;

/// The state of the on-CPU handler: whether it is wanted and running, and which threads fault.
///
/// All fields are hints, and need no order (`Relaxed`): whatever they say, each fault is served once.
#[derive(Debug, Default)]
pub(crate) struct OnCpuHandler {
    /// Whether the policy wants the on-CPU handler: to measure it, or because it was faster.
    wanted: AtomicBool,
    /// Whether the kernel refused the on-CPU handler, which is then not asked for again.
    pub(super) refused: AtomicBool,
    /// Whether the on-CPU handler's thread runs, or is about to be started.
    pub(super) running: AtomicBool,
    /// Whether the on-CPU handler's thread is about to be started.
    pub(super) asked: AtomicBool,
    /// Number of faults that the on-CPU handler served.
    pub(super) served: AtomicU64,
    /// Identifier of the thread of the last fault.
    thread: AtomicU32,
    /// Share of the recent faults that were of another thread than the one before, in units of 1/[`WHOLE`].
    others: AtomicU32,
}

impl OnCpuHandler {
    /// Sets whether the policy wants the on-CPU handler.
    pub(crate) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Notes that the on-CPU handler's thread does not exist, in a process that has just started or was forked.
    pub(crate) fn forget(&self) {
        self.running.store(false, Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Returns whether the on-CPU handler's thread is to be started.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Notes which thread faulted.
    pub(crate) fn met_by(&self, thread: u32) {
        let other = self.thread.swap(thread, Ordering::Relaxed) != thread;
        let others = self.others.load(Ordering::Relaxed);
        let now = others - others / RECENT + if other { WHOLE / RECENT } else { 0 };
        self.others.store(now, Ordering::Relaxed);
    }

    /// Returns whether the on-CPU handler should serve faults now.
    pub(crate) fn is_on(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
            && !self.refused.load(Ordering::Relaxed)
            && self.others.load(Ordering::Relaxed) < MANY
    }

    /// Pins the calling thread to the CPU of the last faulting thread. Returns `false` if the kernel refuses.
    pub(super) fn follow(&self) -> bool {
        let Some(cpu) = thread::processor_of(self.thread.load(Ordering::Relaxed)) else { return true };
        pin::thread(&[cpu].into_iter().collect()).is_ok()
    }
}
