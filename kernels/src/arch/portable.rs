//! Implements the kernels in plain Rust, for processors without a special version, and, compiled for each instruction
//! set, for vectors whose elements are not adjacent.

use super::axpy;
use crate::{Complex, Element, Vector, VectorMut};

/// Folds `term` over the indices `i < n` in `L` lanes, and adds the lanes in halves (see [`mod@crate::reference`]).
#[inline(always)]
fn lanes<T: Element, const L: usize>(n: usize, term: impl Fn(T, usize) -> T) -> T {
    let mut sums = [T::ZERO; L];
    let rows = n / L;
    for row in 0..rows {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = term(*sum, row * L + lane);
        }
    }
    for (lane, sum) in sums.iter_mut().enumerate().take(n % L) {
        *sum = term(*sum, rows * L + lane);
    }
    let mut width = L / 2;
    while width > 0 {
        for k in 0..width {
            sums[k] = sums[k] + sums[k + width];
        }
        width /= 2;
    }
    sums[0]
}

// SAFETY (of every `at` below): `lanes` passes indices below the length it was given.

#[inline(always)]
pub(super) fn sum<T: Element, const L: usize>(x: Vector<'_, T>) -> T {
    // SAFETY: as above.
    lanes::<T, L>(x.len(), |sum, i| sum + unsafe { x.at(i) })
}

#[inline(always)]
pub(super) fn asum<T: Element, const L: usize>(x: Vector<'_, T>) -> T {
    // SAFETY: as above.
    lanes::<T, L>(x.len(), |sum, i| sum + unsafe { x.at(i) }.abs())
}

#[inline(always)]
pub(super) fn sumsq<T: Element, const L: usize>(x: Vector<'_, T>) -> T {
    // SAFETY: as above.
    let at = |i: usize| unsafe { x.at(i) };
    lanes::<T, L>(x.len(), |sum, i| at(i).mul_add(at(i), sum))
}

#[inline(always)]
pub(super) fn sumsq_scaled<T: Element, const L: usize>(x: Vector<'_, T>, scale: T) -> T {
    // SAFETY: as above.
    let at = |i: usize| unsafe { x.at(i) } * scale;
    lanes::<T, L>(x.len(), |sum, i| at(i).mul_add(at(i), sum))
}

/// Compares magnitudes as integers, whose order is theirs, so that compilers use registers of any length.
#[inline(always)]
pub(super) fn extremes<T: Element>(x: Vector<'_, T>) -> [T; 2] {
    // Plain loops, of which nothing is left to be inlined: only then is the instruction set that of the caller.
    let (mut least, mut most) = (T::INFINITE, T::ZERO.magnitude());
    if x.is_contiguous() {
        // SAFETY: the elements can be read, and are adjacent.
        for x in unsafe { core::slice::from_raw_parts(x.first(), x.len()) } {
            (least, most) = wider(least, most, x.magnitude());
        }
    } else {
        for i in 0..x.len() {
            // SAFETY: `i < len`.
            (least, most) = wider(least, most, unsafe { x.at(i) }.magnitude());
        }
    }
    [T::of_magnitude(least), T::of_magnitude(most)]
}

#[inline(always)]
fn wider<M: Copy + Ord>(least: M, most: M, x: M) -> (M, M) {
    (if x < least { x } else { least }, if x > most { x } else { most })
}

#[inline(always)]
pub(super) fn dot<T: Element, const L: usize>(x: Vector<'_, T>, y: Vector<'_, T>) -> T {
    // SAFETY: as above; the caller gives two vectors of one length.
    lanes::<T, L>(x.len(), |sum, i| unsafe { x.at(i).mul_add(y.at(i), sum) })
}

#[inline(always)]
pub(super) fn products<T: Element, const L: usize>(
    x: Vector<'_, Complex<T>>,
    y: Vector<'_, Complex<T>>,
) -> [T; 4] {
    let n = x.len();
    // SAFETY: as above.
    let at = |i: usize| unsafe { (x.at(i), y.at(i)) };
    [
        lanes::<T, L>(n, |sum, i| at(i).0.re.mul_add(at(i).1.re, sum)),
        lanes::<T, L>(n, |sum, i| at(i).0.im.mul_add(at(i).1.im, sum)),
        lanes::<T, L>(n, |sum, i| at(i).0.re.mul_add(at(i).1.im, sum)),
        lanes::<T, L>(n, |sum, i| at(i).0.im.mul_add(at(i).1.re, sum)),
    ]
}

#[inline(always)]
pub(super) fn axpy<T: Element>(a: T, x: Vector<'_, T>, y: &VectorMut<'_, T>) {
    for i in 0..x.len() {
        // SAFETY: the vectors have `len` elements, and `y`'s are the caller's alone.
        unsafe { axpy::step(a, x.address(i), y.address(i)) };
    }
}
