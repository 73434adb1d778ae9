//! Serves the library's own Rust allocations, which never come from the `malloc` it exports.
//!
//! Each size class is a list of freed cells; new cells are cut from chunks, each a mapping of its own. The library
//! allocates little (options, the report's JSON), so one lock is enough, and no chunk is returned to the kernel.
//!
//! A thread of the program blocks its signals before it allocates here (`signals.rs`), because a handler may allocate,
//! too. Builds with debug assertions check that.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SMALLEST: usize = 16;
const CLASSES: usize = 20;
const CHUNK: usize = 256 << 10;

struct Cells {
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

// SAFETY: no thread uses free cells, whichever thread freed them.
unsafe impl Send for Cells {}

/// Allocates cells. Threads sleep while they wait for the lock, whose owner may run at the lowest priority.
pub(crate) struct Private(Mutex<Cells>);

#[global_allocator]
static PRIVATE: Private = Private::new();

/// Holds the allocator's lock across a fork, so that the child's cells are consistent.
pub(crate) struct ForkGuard(#[expect(dead_code, reason = "held, not used")] MutexGuard<'static, Cells>);

/// Locks the allocator for a fork.
pub(crate) fn lock() -> ForkGuard {
    ForkGuard(PRIVATE.cells())
}

fn class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()?;
    let class = (size / SMALLEST).ilog2() as usize;
    (class < CLASSES).then_some(class)
}

impl Private {
    const fn new() -> Private {
        Private(Mutex::new(Cells { free: [null_mut(); CLASSES], next: 0, end: 0 }))
    }

    fn cells(&self) -> MutexGuard<'_, Cells> {
        #[cfg(all(debug_assertions, not(test)))]
        crate::signals::check_that_handlers_are_blocked();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
            Some(class) => self.cells().take(class),
            None => largesse_pages::mapping_at(layout.size()).map_or(null_mut(), NonNull::as_ptr),
        }
    }

    unsafe fn dealloc(&self, cell: *mut u8, layout: Layout) {
        if let Some(class) = class(layout) {
            self.cells().give(cell, class);
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
