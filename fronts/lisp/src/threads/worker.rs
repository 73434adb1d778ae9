//! Describes a worker: its Lisp object, its state and the semaphores by which it is given work.

use super::wait::Semaphore;
use crate::value::Value;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

/// A worker evaluates calls in a thread of its own.
pub(crate) struct Worker {
    /// Its Lisp object, whose slots hold function, arguments, result and bindings.
    pub(super) object: Value,
    pub(super) state: AtomicU8,
    pub(super) requested: Semaphore,
    pub(super) done: Semaphore,
    /// Whether a thread will wait for the result; otherwise the worker returns to the pool by itself.
    pub(super) waited_for: AtomicBool,
    /// The kernel's number of its thread, or 0 before the thread has begun.
    pub(super) kernel_thread: AtomicI32,
    /// Number of interrupts before the work began.
    pub(super) interrupts: AtomicU32,
}

pub(super) const IDLE: u8 = 0;
pub(super) const BUSY: u8 = 1;
/// This state says that the worker's thread ended by a panic.
pub(super) const LOST: u8 = 2;

/// Indices of the slots of a thread object.
pub(crate) mod slot {
    pub(crate) const ID: usize = 1;
    pub(crate) const FUNCTION: usize = 2;
    pub(crate) const ARGUMENTS: usize = 3;
    pub(crate) const RESULT: usize = 4;
    pub(crate) const BINDINGS: usize = 5;
    /// The result's state is nil without a result yet; otherwise t, `:error`, `:quit` or `:interrupt`.
    pub(crate) const STATE: usize = 6;
    pub(crate) const NATIVE: usize = 7;
}

impl Worker {
    /// Returns an idle worker with its Lisp object.
    pub(super) fn new(object: Value) -> Worker {
        Worker {
            object,
            state: AtomicU8::new(IDLE),
            requested: Semaphore::default(),
            done: Semaphore::default(),
            waited_for: AtomicBool::new(false),
            kernel_thread: AtomicI32::new(0),
            interrupts: AtomicU32::new(0),
        }
    }

    /// Returns the kernel's number of the worker's thread once the thread has begun.
    pub(crate) fn kernel_thread(&self) -> Option<i32> {
        // Relaxed: the number says nothing about other memory.
        let number = self.kernel_thread.load(Ordering::Relaxed);
        (number != 0).then_some(number)
    }

    pub(crate) fn object(&self) -> Value {
        self.object
    }

    pub(crate) fn roots(&self, visit: &mut impl FnMut(Value)) {
        visit(self.object);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOST
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.waited_for.load(Ordering::Acquire)
    }

    pub(crate) fn was_waited_for(&self) {
        self.waited_for.store(false, Ordering::Release);
    }

    /// Starts the work that the object's slots describe.
    pub(crate) fn request(&self, waited_for: bool, interrupts: u32) {
        self.waited_for.store(waited_for, Ordering::Release);
        self.interrupts.store(interrupts, Ordering::Release);
        self.requested.post();
    }

    /// Waits up to [`PIECE`](super::wait::PIECE) for the work; returns whether it is done.
    pub(crate) fn done_for_a_while(&self) -> bool {
        self.done.wait_for_a_while()
    }
}
