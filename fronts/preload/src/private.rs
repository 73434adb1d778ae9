//! Serves the library's own Rust allocations, which never come from the `malloc` it exports.
//!
//! Each size class is a list of freed cells; new cells are cut from chunks, each a mapping of its own. The library
//! allocates little (options, the report's JSON), so one lock is enough, and no chunk is returned to the kernel.
//!
//! A thread of the program blocks its signals before it allocates here (`signals.rs`), because a handler may allocate,
//! too. Builds with debug assertions check that.
//!
//! The forking thread holds the lock from the first to the last handler of `fork`. In between the C library makes
//! system calls (since glibc 2.38 it blocks signals there), and so may fork handlers of the program; with a filter of
//! system calls they are served in this thread, and allocate. So the thread that holds the lock for a fork need not
//! take it.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SMALLEST: usize = 16;
const CLASSES: usize = 20;
const CHUNK: usize = 256 << 10;

struct Cells {
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

/// The allocator of the library itself. Threads sleep while they wait for its lock, whose owner may run at the lowest
/// priority.
pub(crate) struct Private {
    lock: Mutex<()>,
    /// Number of the thread that holds the lock for a fork, as [`this_thread`] returns it; 0 while none does.
    forking: AtomicUsize,
    cells: UnsafeCell<Cells>,
}

// SAFETY: `with` lets one thread at a time use the cells, and no thread uses free cells, whichever thread freed them.
unsafe impl Sync for Private {}

#[global_allocator]
static PRIVATE: Private = Private::new();

/// Holds the allocator's lock across a fork, so that the child's cells are consistent.
pub(crate) struct ForkGuard(#[expect(dead_code, reason = "held, not used")] MutexGuard<'static, ()>);

impl Drop for ForkGuard {
    fn drop(&mut self) {
        PRIVATE.forking.store(0, Ordering::Relaxed); // Relaxed: only this thread compares it with its own number
    }
}

/// Locks the allocator for a fork.
pub(crate) fn lock() -> ForkGuard {
    let guard = PRIVATE.lock();
    PRIVATE.forking.store(this_thread(), Ordering::Relaxed); // Relaxed: as above
    ForkGuard(guard)
}

/// Returns a number of the calling thread that a forked child keeps. It is not 0.
fn this_thread() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

fn class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()?;
    let class = (size / SMALLEST).ilog2() as usize;
    (class < CLASSES).then_some(class)
}

impl Private {
    const fn new() -> Private {
        let cells = Cells { free: [null_mut(); CLASSES], next: 0, end: 0 };
        Private { lock: Mutex::new(()), forking: AtomicUsize::new(0), cells: UnsafeCell::new(cells) }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        #[cfg(all(debug_assertions, not(test)))]
        crate::signals::check_that_handlers_are_blocked();
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `with` with the cells, under the lock.
    fn with<R>(&self, with: impl FnOnce(&mut Cells) -> R) -> R {
        // Relaxed: the number of this thread can only have been stored by it.
        let held = self.forking.load(Ordering::Relaxed) == this_thread();
        let _lock = (!held).then(|| self.lock());
        // SAFETY: this thread holds the lock. It is in no other call of `with`: `with` makes no system call of the C
        // library, which a filter could interrupt, and handlers of other signals are blocked.
        with(unsafe { &mut *self.cells.get() })
    }
}

impl Cells {
    fn take(&mut self, class: usize) -> *mut u8 {
        let head = self.free[class];
        if !head.is_null() {
            // SAFETY: a freed cell holds the address of the next one in its first word, see `give`.
            self.free[class] = unsafe { head.cast::<*mut u8>().read() };
            return head;
        }
        let size = SMALLEST << class;
        let start = self.next.next_multiple_of(size.min(4096));
        if self.next == 0 || start + size > self.end {
            let len = CHUNK.max(size);
            let Some(chunk) = largesse_pages::mapping_at(len) else { return null_mut() };
            self.next = chunk.as_ptr().expose_provenance();
            self.end = self.next + len;
            return self.take(class);
        }
        self.next = start + size;
        core::ptr::with_exposed_provenance_mut(start)
    }

    fn give(&mut self, cell: *mut u8, class: usize) {
        // SAFETY: the cell has at least 16 bytes, is aligned to them, and is not used after this call.
        unsafe { cell.cast::<*mut u8>().write(self.free[class]) };
        self.free[class] = cell;
    }
}

// SAFETY: cells of a class have its size and, up to a page, its alignment; `alloc` and `dealloc`
// compute the same class from the same layout.
unsafe impl GlobalAlloc for Private {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class(layout) {
            Some(class) => self.with(|cells| cells.take(class)),
            None => largesse_pages::mapping_at(layout.size()).map_or(null_mut(), NonNull::as_ptr),
        }
    }

    unsafe fn dealloc(&self, cell: *mut u8, layout: Layout) {
        if let Some(class) = class(layout) {
            self.with(|cells| cells.give(cell, class));
        } else if let Some(start) = NonNull::new(cell) {
            // SAFETY: `alloc` made a mapping of its own for a layout without a class, and the caller does not use it
            // again.
            unsafe { largesse_pages::unmap_own(start, layout.size()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_that_forks_may_allocate() {
        let held = lock();
        drop(Box::new([7_u64; 5]));
        let other = std::thread::Builder::new().spawn(|| drop(Box::new([7_u64; 5]))).unwrap();
        assert!(!other.is_finished(), "another thread waits");
        drop(held);
        other.join().unwrap();
    }

    #[test]
    fn cells_are_aligned_and_reused() {
        // Another instance than `PRIVATE`, from which all tests of this process allocate.
        let private = Private::new();
        for (size, align) in [(1, 1), (24, 8), (100, 64), (5000, 4096), (1 << 20, 16)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the layouts are not empty; cells are freed with the layout with which they were allocated.
            unsafe {
                let a = private.alloc(layout);
                let b = private.alloc(layout);
                assert!(a.addr().is_multiple_of(align) && b.addr().is_multiple_of(align));
                assert!(a.addr().abs_diff(b.addr()) >= size);
                private.dealloc(a, layout);
                let again = private.alloc(layout);
                assert_eq!(again, a);
                private.dealloc(again, layout);
                private.dealloc(b, layout);
            }
        }
    }
}
