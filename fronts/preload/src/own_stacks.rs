//! The stacks of the calling thread that are pinned for good. The pager must not be asked about them.
//!
//! Its own code runs on these stacks, in the handler of `SIGBUS` or in a call to the library.
//! Some of its system calls pass addresses of the stack, perhaps while the thread holds the pager's lock. They are
//! trapped like those of the program, and a question to the pager would wait for that lock for good.

use core::ops::Range;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The address ranges of the pinned stacks of one thread, and where on its stack it made the trapped call.
#[derive(Debug)]
pub(crate) struct OwnStacks {
    /// The alternate signal stack.
    pub(crate) signal: Range<usize>,
    /// The stack that the program made for the thread, if the thread was running on it when the signal arrived.
    pub(crate) thread: Range<usize>,
    /// The stack pointer of the program at the trapped call.
    pub(crate) pointer: usize,
    /// Address of the signal frame below it, in which the trapped call is served.
    pub(crate) frame: usize,
    /// Number of the trapped call (`in_progress.rs`).
    pub(crate) call: u64,
}

impl OwnStacks {
    /// The stacks of a thread that is in no handler of the library: it does not hold the pager's lock, and no handler of
    /// the program interrupts its call.
    pub(crate) const NONE: OwnStacks =
        OwnStacks { signal: 0..0, thread: 0..0, pointer: 0, frame: usize::MAX, call: 0 };

    /// Returns whether `len` bytes from the address `at` on lie in one of the stacks.
    pub(crate) fn contain(&self, at: usize, len: usize) -> bool {
        let within = |stack: &Range<usize>| stack.contains(&at) && len <= stack.end - at;
        within(&self.signal) || within(&self.thread)
    }

    /// Returns whether the thread has left the function with a frame at this address. A frame on the stack of the
    /// trapped call is left if it is below the stack pointer, since stacks grow down. Of frames on another stack, only
    /// those on the signal stack are left: a handler on it interrupts all others.
    pub(crate) fn have_left(&self, frame: usize) -> bool {
        match (self.signal.contains(&frame), self.signal.contains(&self.pointer)) {
            (true, false) => true,
            (false, true) => false,
            _ => frame < self.pointer,
        }
    }
}

/// An entry of the list of stacks that the program made for its threads. Entries are never freed: a handler may read
/// them at any time.
struct Listed {
    stack: Range<usize>,
    next: *const Listed,
}

static NEWEST: AtomicPtr<Listed> = AtomicPtr::new(null_mut());

fn listed() -> impl Iterator<Item = &'static Listed> {
    let mut at = NEWEST.load(Ordering::Acquire).cast_const();
    core::iter::from_fn(move || {
        // SAFETY: null, or an entry that `list` has published and that is never freed nor changed.
        let entry = unsafe { at.as_ref() }?;
        at = entry.next;
        Some(entry)
    })
}

/// Notes that a stack which the program made for a thread is pinned for good.
pub(crate) fn list(stack: Range<usize>) {
    if listed().any(|entry| entry.stack == stack) {
        return;
    }
    let entry = Box::leak(Box::new(Listed { stack, next: null_mut() }));
    let mut newest = NEWEST.load(Ordering::Relaxed); // Relaxed: not read here
    loop {
        entry.next = newest;
        match NEWEST.compare_exchange_weak(newest, entry, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => newest = now,
        }
    }
}

/// Returns the listed stack on which a thread with the stack pointer `pointer` runs; empty if it runs on another one.
pub(crate) fn around(pointer: usize) -> Range<usize> {
    listed().find(|entry| entry.stack.contains(&pointer)).map_or(0..0, |entry| entry.stack.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_found_by_their_stack_pointer() {
        list(0x1000..0x2000);
        list(0x4000..0x8000);
        list(0x4000..0x8000);
        assert_eq!(listed().filter(|entry| entry.stack == (0x4000..0x8000)).count(), 1);
        assert_eq!(around(0x4000), 0x4000..0x8000);
        assert_eq!(around(0x1fff), 0x1000..0x2000);
        assert_eq!(around(0x2000), 0..0);
    }

    #[test]
    fn bytes_must_lie_in_one_stack() {
        let stacks = OwnStacks { signal: 0x1000..0x2000, thread: 0x2000..0x3000, ..OwnStacks::NONE };
        assert!(stacks.contain(0x1800, 0x800) && stacks.contain(0x2000, 0x1000));
        assert!(
            !stacks.contain(0x1800, 0x801)
                && !stacks.contain(0x3000, 0)
                && !stacks.contain(0x2800, usize::MAX)
        );
        assert!(!OwnStacks::NONE.contain(0, 0));
    }

    #[test]
    fn left_frames_are_below_the_stack_pointer() {
        let signal = 0x1000..0x2000;
        let at = |pointer| OwnStacks { signal: signal.clone(), pointer, ..OwnStacks::NONE };
        for (pointer, frame, left) in [
            (0x9000, 0x8000, true),
            (0x9000, 0x9100, false),
            (0x9000, 0x1800, true),
            (0x1800, 0x8000, false),
            (0x1800, 0x9000, false),
            (0x1800, 0x1700, true),
            (0x1800, 0x1900, false),
        ] {
            assert_eq!(at(pointer).have_left(frame), left, "{frame:x} at {pointer:x}");
        }
    }
}
