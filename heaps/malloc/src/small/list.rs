//! Keeps slabs in lists without a lock, so that a signal handler or a forked child never waits for one.

use super::slab::Slab;
use crate::sync::{AtomicU64, Ordering};

/// A list of slabs by their numbers, of which the last one added is the first one removed.
///
/// The word has the number of the first slab plus one, and above it a count of all changes: a thread that was
/// interrupted between reading the first slab and removing it notices when the list has changed and has the same first
/// slab again.
#[derive(Debug, Default)]
pub(crate) struct SlabList(AtomicU64);

impl SlabList {
    /// Adds a slab.
    pub(crate) fn push(&self, slabs: &[Slab], number: u32) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            slabs[number as usize].next.store(head as u32, Ordering::Relaxed); // Relaxed: published below
            // Release: pairs with the Acquire of the thread that removes the slab.
            match self.0.compare_exchange(
                head,
                changed(head, number + 1),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Removes a slab; `None` if there is none.
    pub(crate) fn pop(&self, slabs: &[Slab]) -> Option<u32> {
        let mut head = self.0.load(Ordering::Acquire); // Acquire: pairs with the Release in `push`, as below
        loop {
            let first = (head as u32).checked_sub(1)?;
            // Another thread may have removed the slab, and this number be any: the exchange fails then.
            let next = slabs[first as usize].next.load(Ordering::Relaxed);
            match self.0.compare_exchange(head, changed(head, next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(first),
                Err(now) => head = now,
            }
        }
    }

    /// Removes all slabs, and calls `f` with each.
    pub(crate) fn take_all(&self, slabs: &[Slab], mut f: impl FnMut(u32)) {
        let mut head = self.0.load(Ordering::Relaxed);
        while let Err(now) =
            self.0.compare_exchange(head, changed(head, 0), Ordering::Acquire, Ordering::Relaxed)
        {
            head = now;
        }
        let mut at = head as u32;
        while let Some(number) = at.checked_sub(1) {
            at = slabs[number as usize].next.load(Ordering::Relaxed); // before `f` may list it again
            f(number);
        }
    }
}

/// Returns the next value of a list whose first slab is `first`, as number plus one.
fn changed(head: u64, first: u32) -> u64 {
    ((head >> 32).wrapping_add(1) << 32) | u64::from(first)
}

#[cfg(all(test, loom))]
mod tests {
    extern crate std;
    use super::*;
    use loom::sync::Arc;
    use std::vec::Vec;

    // Fails without the count of changes: a thread removes slab 1 while the list has changed in between (ABA), and a
    // slab is handed out twice.
    #[test]
    fn each_slab_is_removed_once() {
        loom::model(|| {
            let shared = Arc::new((SlabList::default(), [(); 2].map(|()| Slab::default())));
            shared.0.push(&shared.1, 0);
            shared.0.push(&shared.1, 1);
            let other = {
                let shared = shared.clone();
                loom::thread::spawn(move || {
                    let (list, slabs) = &*shared;
                    let taken = [list.pop(slabs), list.pop(slabs)];
                    // Listed again in the same order, by which the first one is the same as before.
                    if let Some(first) = taken[0] {
                        list.push(slabs, first);
                    }
                    taken[1]
                })
            };
            let mine = shared.0.pop(&shared.1);
            let theirs = other.join().unwrap();
            let mut all: Vec<u32> = mine.into_iter().chain(theirs).collect();
            shared.0.take_all(&shared.1, |number| all.push(number));
            all.sort_unstable();
            assert_eq!(all, [0, 1], "slabs");
        });
    }
}
