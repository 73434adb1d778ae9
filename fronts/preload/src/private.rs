//! Where the library's own Rust allocations come from: never from the `malloc` it exports.
//!
//! A short list of sizes, each a chain of freed cells; new cells are cut from chunks of their own
//! mapping. Our code allocates little (options, the report's JSON), so one lock and no return.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};

const SMALLEST: usize = 16;
const CLASSES: usize = 20;
const CHUNK: usize = 256 << 10;

struct Cells {
    free: [*mut u8; CLASSES],
    next: usize,
    end: usize,
}

pub(crate) struct Private {
    taken: AtomicBool,
    cells: core::cell::UnsafeCell<Cells>,
}

// SAFETY: `cells` is only reached while `taken` is ours.
unsafe impl Sync for Private {}

#[global_allocator]
static PRIVATE: Private = Private::new();

/// Before `fork`: nobody is inside; [`after_fork`] in parent and child lets them in again.
pub(crate) fn before_fork() {
    PRIVATE.lock();
}

pub(crate) fn after_fork() {
    // Release: as in `with`.
    PRIVATE.taken.store(false, Ordering::Release);
}

fn class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST).checked_next_power_of_two()?;
    let class = (size / SMALLEST).ilog2() as usize;
    (class < CLASSES).then_some(class)
}

impl Private {
    const fn new() -> Private {
        Private {
            taken: AtomicBool::new(false),
            cells: core::cell::UnsafeCell::new(Cells { free: [null_mut(); CLASSES], next: 0, end: 0 }),
        }
    }

    fn lock(&self) {
        // Acquire and Release: each owner sees what the last one wrote.
        while self.taken.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            core::hint::spin_loop();
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Cells) -> R) -> R {
        self.lock();
        // SAFETY: `taken` is ours until the store below.
        let result = f(unsafe { &mut *self.cells.get() });
        self.taken.store(false, Ordering::Release);
        result
    }
}

impl Cells {
    fn take(&mut self, class: usize) -> *mut u8 {
        let head = self.free[class];
        if !head.is_null() {
            // SAFETY: a freed cell holds the next one in its first word, see `give`.
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
        // SAFETY: the cell has at least 16 bytes, is aligned to them, and nobody uses it any more.
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
        } else {
            // SAFETY: `alloc` made a mapping of its own for a layout without a class.
            unsafe { largesse_pages::raw_munmap(cell.cast(), layout.size()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_distinct_and_used_again() {
        // Our own cells: those of `PRIVATE` are taken and given by every other test of this process.
        let private = Private::new();
        for (size, align) in [(1, 1), (24, 8), (100, 64), (5000, 4096), (1 << 20, 16)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: the layouts are not empty; cells are given back with the layout they were taken with.
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
