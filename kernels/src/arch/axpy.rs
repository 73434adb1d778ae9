//! `y[i] = a * x[i] + y[i]`: every element by itself, so that only a NaN's payload needs care.
//!
//! Results are looked at in blocks, before any of them is stored: with a NaN in it, a block is done again one by one. A
//! processor that loads and stores in every cycle has no time to do first the one and then the other, so two blocks are
//! under way: while the results of one are stored, the elements of the next are loaded.

use super::simd::{Nans, Shifts};
use crate::Element;
use crate::reference::settle;

/// Elements below which vectors are short: stores are not aligned first.
pub(super) const ALIGN_FROM: usize = 64;

/// `K` registers are a block. `by_one` is [`one_by_one`], compiled for the instruction set.
///
/// # Safety
/// The instruction set; `n` elements at `x` can be read, and at `y` read and written; they are the same
/// elements, or none of them is.
#[inline(always)]
pub(super) unsafe fn axpy<V: Nans, S: Shifts<V>, const K: usize>(
    a: V::Element,
    x: *const V::Element,
    y: *mut V::Element,
    n: usize,
    by_one: ByOne<V::Element>,
) {
    let size = size_of::<V::Element>();
    let aligned = V::COUNT * size;
    // SAFETY: the instruction set.
    let call = Call { a, factor: unsafe { V::splat(a) }, x, y, by_one };
    let before = y.addr().wrapping_neg() % aligned / size;
    let by = x.wrapping_add(before).addr() % aligned / size;
    // For what comes from aligned loads, a register of `x` lies before it.
    let mut done = if S::PAYS && by > 0 { before + V::COUNT } else { before };
    if done > 0 {
        // SAFETY: less than `n`.
        unsafe { by_one(a, x, y, done) };
    }
    if S::PAYS && by > 0 {
        // SAFETY: the instruction set.
        let shift = unsafe { S::by(by) };
        let read = |at: usize| {
            let low = x.wrapping_add(at).wrapping_sub(by);
            // SAFETY: a register of `x` before and behind the element can be read.
            unsafe { S::shifted(V::load(low), V::load(low.add(V::COUNT)), shift) }
        };
        // SAFETY: `read` needs one register more than it gives.
        done = unsafe { call.blocks::<K>(done, n - V::COUNT, read) };
    }
    // SAFETY: all elements that are asked for are within `n`.
    let read = |at: usize| unsafe { V::load(x.add(at)) };
    // SAFETY: as above.
    unsafe { call.rest(call.blocks::<K>(done, n, read), n) };
}

/// As [`axpy`], for less than [`ALIGN_FROM`] elements.
///
/// # Safety
/// As [`axpy`].
#[inline(always)]
pub(super) unsafe fn short<V: Nans, const K: usize>(
    a: V::Element,
    x: *const V::Element,
    y: *mut V::Element,
    n: usize,
    by_one: ByOne<V::Element>,
) {
    // SAFETY: the instruction set.
    let call = Call { a, factor: unsafe { V::splat(a) }, x, y, by_one };
    // SAFETY: all elements that are asked for are within `n`.
    let read = |at: usize| unsafe { V::load(x.add(at)) };
    let mut done = 0;
    while done + K * V::COUNT <= n {
        // SAFETY: as above.
        unsafe { call.put(done, call.results::<K>(done, read)) };
        done += K * V::COUNT;
    }
    // SAFETY: as above.
    unsafe { call.rest(done, n) };
}

/// [`one_by_one`] of an instruction set.
pub(super) type ByOne<T> = unsafe fn(T, *const T, *mut T, usize);

/// What all blocks of a call have in common.
struct Call<V: Nans> {
    a: V::Element,
    factor: V,
    x: *const V::Element,
    y: *mut V::Element,
    by_one: ByOne<V::Element>,
}

/// # Safety of every method
/// As [`axpy`]; `read(at)` is the register of `x` from element `at` on, and all elements named are there.
impl<V: Nans> Call<V> {
    /// From element `done` to the end, `n`: registers one at a time, then elements.
    #[inline(always)]
    unsafe fn rest(&self, mut done: usize, n: usize) {
        // SAFETY: the caller's promise.
        let read = |at: usize| unsafe { V::load(self.x.add(at)) };
        while done + V::COUNT <= n {
            // SAFETY: as above.
            unsafe { self.put(done, self.results::<1>(done, read)) };
            done += V::COUNT;
        }
        if done < n {
            // SAFETY: what is left.
            unsafe { (self.by_one)(self.a, self.x.add(done), self.y.add(done), n - done) };
        }
    }

    /// Blocks of `K` registers from element `done` on, as many as end at `end` or before. How many elements are done.
    #[inline(always)]
    unsafe fn blocks<const K: usize>(&self, mut done: usize, end: usize, read: impl Fn(usize) -> V) -> usize {
        let block = K * V::COUNT;
        if done + block > end {
            return done;
        }
        // SAFETY: the block that is read ends at `end` or before.
        let mut results = unsafe { self.results::<K>(done, &read) };
        // Two blocks a turn: they change places without a move.
        while done + 3 * block <= end {
            // SAFETY: as above.
            let next = unsafe { self.put_and_read(done, results, &read) };
            // SAFETY: as above.
            results = unsafe { self.put_and_read(done + block, next, &read) };
            done += 2 * block;
        }
        if done + 2 * block <= end {
            // SAFETY: as above.
            results = unsafe { self.put_and_read(done, results, &read) };
            done += block;
        }
        // SAFETY: as above.
        unsafe { self.put(done, results) };
        done + block
    }

    /// The results of the `K` registers from element `at` on.
    #[inline(always)]
    unsafe fn results<const K: usize>(&self, at: usize, read: impl Fn(usize) -> V) -> [V; K] {
        // SAFETY: the caller's promise.
        core::array::from_fn(|k| unsafe { self.result(at + k * V::COUNT, &read) })
    }

    #[inline(always)]
    unsafe fn result(&self, at: usize, read: impl Fn(usize) -> V) -> V {
        // SAFETY: the caller's promise.
        unsafe { self.factor.mul_add(read(at), V::load(self.y.add(at))) }
    }

    /// Stores the results from element `at` on, and gives those of the next block.
    #[inline(always)]
    unsafe fn put_and_read<const K: usize>(
        &self,
        at: usize,
        results: [V; K],
        read: impl Fn(usize) -> V,
    ) -> [V; K] {
        // SAFETY: the caller's promise.
        let mut results = unsafe { self.settled(at, results) };
        for k in 0..K {
            let here = at + k * V::COUNT;
            // SAFETY: as above; the next block was not yet written.
            unsafe {
                let next = self.result(here + K * V::COUNT, &read);
                results[k].store(self.y.add(here));
                results[k] = next;
            }
        }
        results
    }

    /// Stores the results from element `at` on.
    #[inline(always)]
    unsafe fn put<const K: usize>(&self, at: usize, results: [V; K]) {
        // SAFETY: the caller's promise.
        let results = unsafe { self.settled(at, results) };
        for k in 0..K {
            // SAFETY: as above.
            unsafe { results[k].store(self.y.add(at + k * V::COUNT)) };
        }
    }

    /// The same, NaNs by the reference's rule.
    #[inline(always)]
    unsafe fn settled<const K: usize>(&self, at: usize, results: [V; K]) -> [V; K] {
        // SAFETY: the instruction set.
        if !unsafe { any_nan(&results) } {
            return results;
        }
        // SAFETY: the caller's promise; nothing of this block was written yet.
        unsafe {
            (self.by_one)(self.a, self.x.add(at), self.y.add(at), K * V::COUNT);
            core::array::from_fn(|k| V::load(self.y.add(at + k * V::COUNT)))
        }
    }
}

/// # Safety
/// The instruction set.
#[inline(always)]
unsafe fn any_nan<V: Nans>(results: &[V]) -> bool {
    let mut nans = results.chunks(2).map(|two| {
        // SAFETY: the caller's promise.
        unsafe { V::nans(two[0], two[two.len() - 1]) }
    });
    let first = nans.next();
    // SAFETY: as above.
    first.is_some_and(|first| unsafe { nans.fold(first, |all, next| all.or(next)).any() })
}

/// # Safety
/// As [`axpy`].
#[inline(always)]
pub(super) unsafe fn one_by_one<T: Element>(a: T, x: *const T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { step(a, x.add(i), y.add(i)) };
    }
}

/// # Safety
/// `x` can be read, `y` read and written.
#[inline(always)]
pub(super) unsafe fn step<T: Element>(a: T, x: *const T, y: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        let (x, old) = (x.read(), y.read());
        let new = a.mul_add(x, old);
        y.write(if new.is_nan() { settle(new, [a, x, old]) } else { new });
    }
}
