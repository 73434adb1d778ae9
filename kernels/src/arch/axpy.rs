//! Computes `y[i] = a * x[i] + y[i]`. The elements are independent of each other, so that only the payload of a NaN
//! needs care.
//!
//! Results are checked in blocks before they are stored; a block with a NaN is computed again element by element. A
//! processor that loads and stores in every cycle has no time to do both in turn, so two blocks are in progress: while
//! the results of one are stored, the elements of the next are loaded.

use super::simd::{Nans, Shifts};
use crate::Element;
use crate::reference::settle;

/// Number of elements from which a vector is long enough to align the stores first.
pub(super) const ALIGN_FROM: usize = 64;

/// Computes `axpy` in blocks of `K` registers. `by_one` is [`one_by_one`], compiled for the instruction set.
///
/// # Safety
/// The processor has the instruction set; `n` elements at `x` can be read, and at `y` read and written; they are the
/// same elements, or they do not overlap.
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
    let call = AxpyCall { a, factor: unsafe { V::splat(a) }, x, y, by_one };
    let before = y.addr().wrapping_neg() % aligned / size;
    let by = x.wrapping_add(before).addr() % aligned / size;
    // Shifted reads start a register earlier in `x`, which must exist.
    let mut done = if S::PAYS && by > 0 { before + V::COUNT } else { before };
    if done > 0 {
        // SAFETY: at most `n` elements.
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
        // SAFETY: `read` needs one register more than it returns.
        done = unsafe { call.blocks::<K>(done, n - V::COUNT, read) };
    }
    // SAFETY: all elements that are asked for are within `n`.
    let read = |at: usize| unsafe { V::load(x.add(at)) };
    // SAFETY: as above.
    unsafe { call.rest(call.blocks::<K>(done, n, read), n) };
}

/// Computes `axpy` for fewer than [`ALIGN_FROM`] elements, without aligning the stores.
///
/// # Safety
/// The requirements are those of [`axpy`].
#[inline(always)]
pub(super) unsafe fn short<V: Nans, const K: usize>(
    a: V::Element,
    x: *const V::Element,
    y: *mut V::Element,
    n: usize,
    by_one: ByOne<V::Element>,
) {
    // SAFETY: the instruction set.
    let call = AxpyCall { a, factor: unsafe { V::splat(a) }, x, y, by_one };
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

/// The type of [`one_by_one`], compiled for an instruction set.
pub(super) type ByOne<T> = unsafe fn(T, *const T, *mut T, usize);

/// The arguments of a call of `axpy`, which all its blocks share.
struct AxpyCall<V: Nans> {
    a: V::Element,
    factor: V,
    x: *const V::Element,
    y: *mut V::Element,
    by_one: ByOne<V::Element>,
}

/// # Safety of every method
/// The requirements are those of [`axpy`]; `read(at)` returns the register of `x` from element `at` on, and all named
/// elements exist.
impl<V: Nans> AxpyCall<V> {
    /// Computes elements `done..n`: one register at a time, then single elements.
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

    /// Computes the blocks of `K` registers from element `done` on that end at `end` or before. Returns the index of
    /// the first element that is not computed yet.
    #[inline(always)]
    unsafe fn blocks<const K: usize>(&self, mut done: usize, end: usize, read: impl Fn(usize) -> V) -> usize {
        let block = K * V::COUNT;
        if done + block > end {
            return done;
        }
        // SAFETY: the block that is read ends at `end` or before.
        let mut results = unsafe { self.results::<K>(done, &read) };
        // Two blocks a turn, so that their registers swap roles without a move.
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

    /// Returns the results of the `K` registers from element `at` on.
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

    /// Stores `results`, which are those of the block from element `at` on, and computes those of the next block.
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

    /// Returns the results from element `at` on, with NaNs replaced by the reference's rule.
    #[inline(always)]
    unsafe fn settled<const K: usize>(&self, at: usize, results: [V; K]) -> [V; K] {
        // SAFETY: the instruction set.
        if !unsafe { any_nan(&results) } {
            return results;
        }
        // SAFETY: the caller's promise; no element of this block was written yet.
        unsafe {
            (self.by_one)(self.a, self.x.add(at), self.y.add(at), K * V::COUNT);
            core::array::from_fn(|k| V::load(self.y.add(at + k * V::COUNT)))
        }
    }
}

/// Returns whether any lane of the registers is a NaN.
///
/// # Safety
/// The processor has the instruction set.
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

/// Computes `axpy` element by element, with the reference's rule for NaNs.
///
/// # Safety
/// The requirements are those of [`axpy`].
#[inline(always)]
pub(super) unsafe fn one_by_one<T: Element>(a: T, x: *const T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { step(a, x.add(i), y.add(i)) };
    }
}

/// Computes one element of `axpy`, with the reference's rule for NaNs.
///
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
