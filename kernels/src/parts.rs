//! Divides long vectors into parts, whose borders depend on the vector's length alone, and divides the parts among
//! threads.

use crate::fenv::{Environment, Raised};
use crate::reference::{PART, PARTS, part_len};
use crate::{Element, Team};
use core::cell::UnsafeCell;

/// Number of bytes that a call reads or writes from which threads share the work. Below it, waking them takes longer
/// than they save.
pub(crate) const TEAM_FROM: usize = 8 << 20;

/// The `K` sums of one part, written by the thread that computes it.
struct PartSums<T, const K: usize>(UnsafeCell<[T; K]>);

// SAFETY: each value is written by one thread, and read after all have finished.
unsafe impl<T: Send, const K: usize> Sync for PartSums<T, K> {}

/// Returns the `K` sums of a vector of `n` elements, from the `K` sums `part(start, len)` of each of its parts.
/// `bytes` is the number of bytes that are read or written for each element.
pub(crate) fn in_parts<T: Element, const K: usize>(
    n: usize,
    bytes: usize,
    team: &dyn Team,
    part: &(dyn Fn(usize, usize) -> [T; K] + Sync),
) -> [T; K] {
    if n <= PART {
        return part(0, n).map(|sum| sum + T::ZERO);
    }
    each_part(n, bytes, team, part, |count, sums| {
        core::array::from_fn(|k| in_lanes((0..count).map(|i| sums(i)[k])) + T::ZERO)
    })
}

/// Calls `part(start, len)` for each part of more than [`PART`] elements, of which each moves `bytes` bytes. `combine`
/// gets the number of parts, and a function that returns the result of each.
pub(crate) fn each_part<T: Element, const K: usize>(
    n: usize,
    bytes: usize,
    team: &dyn Team,
    part: &(dyn Fn(usize, usize) -> [T; K] + Sync),
    combine: impl FnOnce(usize, &dyn Fn(usize) -> [T; K]) -> [T; K],
) -> [T; K] {
    let len = part_len::<T>(n);
    let count = n.div_ceil(len);
    let results: [_; PARTS] = core::array::from_fn(|_| PartSums(UnsafeCell::new([T::ZERO; K])));
    let some = |range: core::ops::Range<usize>| {
        for i in range {
            let start = i * len;
            let result = part(start, len.min(n - start));
            // SAFETY: each part is computed by one thread.
            unsafe { results[i].0.get().write(result) };
        }
    };
    // With and without a team, the calling thread raises the same exceptions.
    let (mode, raised) = (Environment::here(), Raised::default());
    let work = |range| raised.add(mode.during(|| some(range)));
    let size = if n < TEAM_FROM / bytes { 1 } else { team.size().min(count) };
    if size <= 1 {
        work(0..count);
    } else {
        // Contiguous shares, the same in every call: each thread gets the elements it touched first.
        team.run(size, &|member| work(count * member / size..count * (member + 1) / size));
    }
    raised.get().raise();
    // SAFETY: all threads have finished.
    combine(count, &|i| unsafe { results[i].0.get().read() })
}

/// Adds the parts' sums in the order in which the elements of a vector are added.
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
