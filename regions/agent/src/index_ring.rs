//! A queue of indices in shared memory, which one process writes and the other reads.
//!
//! ```text
//!   push: indices[tail % DEPTH] = index, then tail + 1 ──► pop: waits while tail is the reader's head
//! ```
//! The tail is never reset, and each side keeps its own end of the queue. At most [`DEPTH`] indices are in the queue,
//! because the writer uses an index again only after the reader has answered it.

use crate::slot::SPIN;
use crate::sync::{AtomicU32, FutexWord, Ordering};
use std::time::{Duration, Instant};

/// Largest number of indices in a ring.
pub(crate) const DEPTH: usize = if cfg!(loom) { 2 } else { 32 };

/// Bit of the tail: the reader sleeps until the tail changes, and must be woken.
const SLEEPS: u32 = 1;
/// Bit of the tail: the ring is closed, so that nothing more can be popped once it is empty.
const CLOSED: u32 = 2;
/// Value by which the tail grows for each index.
const ONE: u32 = 4;

/// A ring of indices below [`DEPTH`]. All-zero bytes are an empty ring.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct IndexRing {
    tail: FutexWord,
    indices: [AtomicU32; DEPTH],
}

/// The reader's end of a ring: the number of indices that were popped, modulo 2^30.
#[derive(Debug, Default)]
pub(crate) struct Head(u32);

/// The writer's end of a ring: the number of indices that were put in, modulo 2^30.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    put: u32,
    /// Number of indices that were put in and that the reader was not told of.
    untold: u32,
}

/// The reason why no index was popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotPopped {
    /// The ring is empty.
    Empty,
    /// The ring was closed, or its writer violates the protocol.
    Closed,
}

impl IndexRing {
    /// Empties the ring and opens it again. Neither side may use it during the call.
    pub(crate) fn reset(&self) {
        self.tail.store(0, Ordering::Relaxed); // Relaxed: the other side is told by a message
    }

    /// Puts an index into the ring. The reader sees it after [`tell`](IndexRing::tell).
    pub(crate) fn put(&self, tail: &mut Tail, index: u32) {
        // Relaxed: published by the tail.
        self.indices[tail.put as usize % DEPTH].store(index, Ordering::Relaxed);
        (tail.put, tail.untold) = (tail.put.wrapping_add(1), tail.untold + 1);
    }

    /// Shows the reader all indices that were put in, and wakes it if it sleeps.
    pub(crate) fn tell(&self, tail: &mut Tail) {
        let more = core::mem::take(&mut tail.untold) * ONE;
        if more > 0 {
            // Release: pairs with the Acquire in `pop`, so that the reader sees the indices and what they stand for.
            self.change(|before| before.wrapping_add(more));
        }
    }

    /// Closes the ring: the reader finds it closed once it is empty.
    pub(crate) fn close(&self) {
        self.change(|before| before | CLOSED);
    }

    fn change(&self, change: impl Fn(u32) -> u32) {
        let mut before = self.tail.load(Ordering::Relaxed);
        loop {
            let after = change(before) & !SLEEPS;
            match self.tail.compare_exchange_weak(before, after, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        if before & SLEEPS != 0 {
            self.tail.wake();
        }
    }

    /// Takes the next index out of the ring. Waits while there is none, for at most the time `wait`, or without a limit
    /// if that is `None`.
    pub(crate) fn pop(&self, head: &mut Head, wait: Option<Duration>) -> Result<usize, NotPopped> {
        let mut since = None;
        loop {
            // Acquire: pairs with the Release in `change`.
            let tail = self.tail.load(Ordering::Acquire);
            let waiting = (tail / ONE).wrapping_sub(head.0) % (1 << 30);
            if waiting > 0 {
                // Relaxed: ordered by the load above.
                let index = self.indices[head.0 as usize % DEPTH].load(Ordering::Relaxed) as usize;
                if waiting as usize > DEPTH || index >= DEPTH {
                    return Err(NotPopped::Closed);
                }
                head.0 = head.0.wrapping_add(1) % (1 << 30);
                return Ok(index);
            }
            if tail & CLOSED != 0 {
                return Err(NotPopped::Closed);
            }
            if wait == Some(Duration::ZERO) {
                return Err(NotPopped::Empty);
            }
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if wait.is_some_and(|wait| waited >= wait) {
                return Err(NotPopped::Empty);
            }
            if waited < SPIN {
                core::hint::spin_loop();
                continue;
            }
            let asleep = tail | SLEEPS;
            // Relaxed: it matters only whether the tail is unchanged; the load above orders the rest.
            let marked = self.tail.compare_exchange(tail, asleep, Ordering::Relaxed, Ordering::Relaxed);
            if marked.is_ok() {
                self.tail.wait(asleep, wait.map(|wait| wait.saturating_sub(waited)));
            }
        }
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn indices_arrive_in_order_and_closing_ends_the_reader() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let ring = Arc::new(IndexRing::default());
            let reader = {
                let ring = ring.clone();
                loom::thread::spawn(move || {
                    let (mut head, mut popped) = (Head::default(), Vec::new());
                    while let Ok(index) = ring.pop(&mut head, None) {
                        popped.push(index);
                    }
                    popped
                })
            };
            let mut tail = Tail::default();
            ring.put(&mut tail, 1);
            ring.tell(&mut tail);
            ring.put(&mut tail, 0);
            ring.tell(&mut tail);
            ring.close();
            assert_eq!(reader.join().unwrap(), [1, 0]);
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_breaks_the_protocol_closes_the_ring() {
        let (ring, mut tail) = (IndexRing::default(), Tail::default());
        ring.put(&mut tail, 5);
        ring.tell(&mut tail);
        let mut head = Head::default();
        assert_eq!(ring.pop(&mut head, None), Ok(5));
        assert_eq!(ring.pop(&mut head, Some(Duration::from_millis(1))), Err(NotPopped::Empty));
        ring.put(&mut tail, u32::try_from(DEPTH).unwrap());
        ring.tell(&mut tail);
        assert_eq!(ring.pop(&mut head, None), Err(NotPopped::Closed));
        ring.reset();
        (0..=DEPTH).for_each(|_| ring.put(&mut tail, 0));
        ring.tell(&mut tail);
        assert_eq!(ring.pop(&mut Head::default(), None), Err(NotPopped::Closed));
    }

    #[test]
    fn the_count_wraps_around() {
        let ring = IndexRing::default();
        let last = (1 << 30) - 1;
        ring.tail.store(last * ONE, Ordering::Relaxed);
        let (mut head, mut tail) = (Head(last), Tail { put: last, untold: 0 });
        for index in [3, 4, 5] {
            ring.put(&mut tail, index);
            ring.tell(&mut tail);
            assert_eq!(ring.pop(&mut head, Some(Duration::ZERO)), Ok(index as usize));
        }
    }
}
