//! Long vectors in parts, whose place depends on the length alone; threads share the parts.

use crate::fenv::{Environment, Raised};
use crate::reference::{PART, PARTS, part_len};
use crate::{Element, Team};
use core::cell::UnsafeCell;

/// Bytes to be moved from which a team is asked for help: with fewer, waking it takes longer than it saves.
pub(crate) const TOGETHER_FROM: usize = 8 << 20;

/// One part's results.
struct Place<T, const K: usize>(UnsafeCell<[T; K]>);

// SAFETY: every place is written by one thread, and read after all have finished.
unsafe impl<T: Send, const K: usize> Sync for Place<T, K> {}

/// `K` sums of what `part(start, len)` gives for every part; an element moves `bytes`.
pub(crate) fn in_parts<T: Element, const K: usize>(
    n: usize,
    bytes: usize,
    team: &dyn Team,
    part: &(dyn Fn(usize, usize) -> [T; K] + Sync),
) -> [T; K] {
    if n <= PART {
        return part(0, n).map(|sum| sum + T::ZERO);
    }
    let len = part_len::<T>(n);
    let count = n.div_ceil(len);
    let places: [_; PARTS] = core::array::from_fn(|_| Place(UnsafeCell::new([T::ZERO; K])));
    let some = |range: core::ops::Range<usize>| {
        for i in range {
            let start = i * len;
            let result = part(start, len.min(n - start));
            // SAFETY: each part is one thread's.
            unsafe { places[i].0.get().write(result) };
        }
    };
    // With and without a team: the same exceptions, raised in the calling thread.
    let (mode, raised) = (Environment::here(), Raised::default());
    let work = |range| raised.add(mode.during(|| some(range)));
    let size = if n < TOGETHER_FROM / bytes { 1 } else { team.size().min(count) };
    if size <= 1 {
        work(0..count);
    } else {
        // Contiguous shares, always the same: a thread finds again what it touched first.
        team.run(size, &|member| work(count * member / size..count * (member + 1) / size));
    }
    raised.get().raise();
    core::array::from_fn(|k| {
        let each = places[..count].iter().map(|place| {
            // SAFETY: all threads have finished.
            let sums = unsafe { place.0.get().read() };
            sums[k]
        });
        in_lanes(each) + T::ZERO
    })
}

/// The parts' results are a vector, summed in the order of all vectors.
fn in_lanes<T: Element>(each: impl Iterator<Item = T>) -> T {
    let mut lanes = [T::ZERO; 128];
    let lanes = &mut lanes[..T::LANES];
    for (i, one) in each.enumerate() {
        lanes[i % T::LANES] = lanes[i % T::LANES] + one;
    }
    let mut width = T::LANES / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] = lanes[k] + lanes[k + width];
        }
        width /= 2;
    }
    lanes[0]
}
