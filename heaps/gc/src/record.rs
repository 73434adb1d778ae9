//! Holds the heap's record of one thread.

use crate::Word;
use crate::classes::CLASSES;
use crate::context::{Bump, Context, Signal};
use crate::delegation::Delegation;
use crate::sync::{AtomicUsize, Ordering};
use crate::world::Member;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

/// Holds the state of a registered thread. All of it except the signal may be accessed only by that thread while it
/// runs, and only by the collector while it is stopped.
#[derive(Debug)]
pub(crate) struct Record {
    context: NonNull<Context>,
    roots: NonNull<[Word]>,
    delegation: UnsafeCell<Delegation>,
    /// The bumps that are used instead of those in `context` when machine code must not allocate inline: in every mode
    /// but [`Sync::Safepoint`](crate::Sync::Safepoint), and under [`GcSettings::stress`](crate::GcSettings::stress).
    hidden_bumps: UnsafeCell<[Bump; CLASSES]>,
    number: u64,
    /// The [`largesse_pages::thread_handle`] of the thread, or 0 before it starts.
    thread: AtomicUsize,
}

// SAFETY: see the type: one owner at a time, and stopping and resuming pass ownership on.
unsafe impl Send for Record {}
// SAFETY: as above; the signal is atomic.
unsafe impl Sync for Record {}

impl Record {
    pub(crate) fn new(number: u64, root_words: usize) -> Record {
        let roots = NonNull::from(Box::leak(vec![Word(0); root_words].into_boxed_slice()));
        let bottom = roots.as_ptr().cast::<Word>();
        let context = Context {
            signal: Signal::new(),
            roots_top: bottom,
            // SAFETY: one past the end of the same allocation.
            roots_limit: unsafe { bottom.add(root_words) },
            bumps: [Bump::default(); CLASSES],
        };
        Record {
            context: NonNull::from(Box::leak(Box::new(context))),
            roots,
            delegation: UnsafeCell::new(Delegation::new()),
            hidden_bumps: UnsafeCell::new([Bump::default(); CLASSES]),
            number,
            thread: AtomicUsize::new(0),
        }
    }

    /// Binds the record to the calling thread.
    pub(crate) fn claim(&self) {
        // Relaxed: only the same thread compares equal.
        self.thread.store(largesse_pages::thread_handle(), Ordering::Relaxed);
    }

    pub(crate) fn is_of_this_thread(&self) -> bool {
        // Relaxed: see `claim`.
        self.thread.load(Ordering::Relaxed) == largesse_pages::thread_handle()
    }

    /// Returns the thread's number, in order of registration.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn context(&self) -> NonNull<Context> {
        self.context
    }

    pub(crate) fn roots_bottom(&self) -> *mut Word {
        self.roots.as_ptr().cast()
    }

    /// Returns the thread's delegated blocks, and the bumps from which it allocates: the hidden ones if `hidden`.
    ///
    /// # Safety
    /// The caller is the thread itself, or the thread is stopped; and no earlier borrow is in use.
    #[expect(clippy::mut_from_ref, reason = "the caller owns the record for now")]
    pub(crate) unsafe fn delegation(&self, hidden: bool) -> (&mut Delegation, &mut [Bump; CLASSES]) {
        // SAFETY: the caller's promise.
        unsafe {
            let bumps =
                if hidden { self.hidden_bumps.get() } else { &raw mut (*self.context.as_ptr()).bumps };
            (&mut *self.delegation.get(), &mut *bumps)
        }
    }

    /// Returns the words on the root stack.
    ///
    /// # Safety
    /// The conditions are those of [`delegation`](Record::delegation).
    pub(crate) unsafe fn roots(&self) -> &[Word] {
        let bottom = self.roots_bottom();
        // SAFETY: the top never leaves the stack, whose words are all initialised.
        unsafe {
            let top = (*self.context.as_ptr()).roots_top;
            core::slice::from_raw_parts(bottom, top.offset_from_unsigned(bottom))
        }
    }

    /// Returns the words on the root stack, for writing.
    ///
    /// # Safety
    /// The conditions are those of [`delegation`](Record::delegation).
    #[expect(clippy::mut_from_ref, reason = "the caller owns the record for now")]
    pub(crate) unsafe fn roots_mut(&self) -> &mut [Word] {
        let bottom = self.roots_bottom();
        // SAFETY: as in `roots`.
        unsafe {
            let top = (*self.context.as_ptr()).roots_top;
            core::slice::from_raw_parts_mut(bottom, top.offset_from_unsigned(bottom))
        }
    }
}

impl Member for Record {
    fn signal(&self) -> &Signal {
        // SAFETY: the context lives as long as the record, and only atomics of the signal are written.
        unsafe { &(*self.context.as_ptr()).signal }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        // SAFETY: both were leaked by `new`, and no reference to the record is left.
        unsafe {
            drop(Box::from_raw(self.context.as_ptr()));
            drop(Box::from_raw(self.roots.as_ptr()));
        }
    }
}
