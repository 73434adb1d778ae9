//! Whether faults are handled on the faulting CPU, and by which thread.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use largesse_machine::{pin, thread};

/// Of this many, so many faults may be met by another thread than the one before.
const WHOLE: u32 = 1024;
const FEW: u32 = WHOLE / 8;
/// How many faults that goes back.
const LATELY: u32 = 32;

/// Who serves, and whom.
///
/// All are hints: faults are served, and once, whatever these say. So no order is asked of them (`Relaxed`).
#[derive(Debug, Default)]
pub(crate) struct OnCpuHandler {
    /// It is to be tried, or was found better.
    wanted: AtomicBool,
    /// It was refused, and is not asked for again.
    pub(super) refused: AtomicBool,
    /// There is a thread for it, or it is to be started.
    pub(super) running: AtomicBool,
    /// It is to be started.
    pub(super) asked: AtomicBool,
    /// Faults that it served.
    pub(super) served: AtomicU64,
    /// Who met the last fault.
    thread: AtomicU32,
    /// How many are met by another thread than the one before, of [`WHOLE`].
    others: AtomicU32,
}

impl OnCpuHandler {
    /// It should be, or should not.
    pub(crate) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    /// In a process that has none of our threads yet.
    pub(crate) fn forget(&self) {
        self.running.store(false, Ordering::Relaxed);
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Somebody asks for the thread to be started.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// A thread met a fault.
    pub(crate) fn met_by(&self, thread: u32) {
        let other = self.thread.swap(thread, Ordering::Relaxed) != thread;
        let others = self.others.load(Ordering::Relaxed);
        let now = others - others / LATELY + if other { WHOLE / LATELY } else { 0 };
        self.others.store(now, Ordering::Relaxed);
    }

    /// Faults are to be served here.
    pub(crate) fn is_on(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
            && !self.refused.load(Ordering::Relaxed)
            && self.others.load(Ordering::Relaxed) < FEW
    }

    /// Goes where the last fault was met. `false`: that cannot be.
    pub(super) fn follow(&self) -> bool {
        let Some(cpu) = thread::processor_of(self.thread.load(Ordering::Relaxed)) else { return true };
        pin::thread(&[cpu].into_iter().collect()).is_ok()
    }
}
