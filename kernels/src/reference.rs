//! Defines every kernel's result, to the bit, by plain code over fixed lanes and a fixed tree.
//!
//! # Order of additions
//! 1. A vector of more than [`PART`] elements is divided into at most [`PARTS`] equal parts, whose borders depend on
//!    its length alone (see [`part_len`]).
//! 2. Within a part, element `i` goes to lane `i mod L`, in order. `L` is [`Element::LANES`] (64 of `f64`,
//!    128 of `f32`) for real numbers, a quarter of it for complex ones. Every lane starts at `+0.0`.
//!    Products are added by one fused operation, rounded once.
//! 3. The lanes are added in halves: lane `k` and lane `k + L/2`, then `k` and `k + L/4`, … down to one.
//! 4. The parts' sums are added in the same way, like a vector's elements. At the end `+0.0` is added, so that a zero
//!    is positive.
//!
//! # NaN results
//! A NaN result is the first NaN among the inputs (`x[0]`, `y[0]`, `x[1]`, …; the real part before the imaginary), made
//! quiet, with its sign and payload: R's `NA` stays `NA`. If no input is a NaN (`inf - inf`, `0 * inf`), it is
//! [`Element::NAN`]. The inputs of `axpy` are `a`, `x[i]`, `y[i]`.
//!
//! # Rounding
//! Every step is one correctly rounded operation of IEEE 754. Therefore instruction sets with a fused multiply-add
//! agree with each other in other rounding modes, too, and with subnormal numbers flushed to zero, though the bits
//! differ from those in the usual mode, and a zero may be negative. Without that instruction, the C library computes
//! fused operations, and does so in its own way in such modes.

use crate::{Complex, Element};
use core::ops::Range;

/// Number of elements up to which a vector is one part.
pub const PART: usize = 32 * 1024;
/// Largest number of parts of a vector.
pub const PARTS: usize = 256;

/// Returns the number of elements of every part but the last, which has the remaining elements. It is a multiple of
/// the number of lanes if there are several parts.
#[must_use]
pub fn part_len<T: Element>(n: usize) -> usize {
    if n <= PART { n } else { n.div_ceil(n.div_ceil(PART).min(PARTS)).next_multiple_of(T::LANES) }
}

/// Returns the sum of `x`.
#[must_use]
pub fn sum<T: Element>(x: &[T]) -> T {
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| sum + x[i])]);
    settle(sum, x.iter().copied())
}

/// Returns the sum of the absolute values of `x`.
#[must_use]
pub fn asum<T: Element>(x: &[T]) -> T {
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| sum + x[i].abs())]);
    settle(sum, x.iter().copied())
}

/// Returns the sum of the squares of `x`.
#[must_use]
pub fn sumsq<T: Element>(x: &[T]) -> T {
    settle(squares(x, None), x.iter().copied())
}

/// Returns the square root of the sum of squares, without intermediate overflow or underflow.
#[must_use]
pub fn nrm2<T: Element>(x: &[T]) -> T {
    let limits = T::SQUARES;
    let plain = squares(x, None);
    let norm = if plain.is_nan() {
        plain
    } else if plain < limits.least {
        squares(x, Some(limits.up)).sqrt() * limits.up_undone
    } else if plain < T::INFINITY {
        plain.sqrt()
    } else {
        squares(x, Some(limits.down)).sqrt() * limits.down_undone
    };
    settle(norm, x.iter().copied())
}

/// Returns the largest absolute value, or zero if there is none.
#[must_use]
pub fn amax<T: Element>(x: &[T]) -> T {
    let larger = |most: T, x: &T| if most.is_nan() || x.abs() <= most { most } else { x.abs() };
    settle(x.iter().fold(T::ZERO, larger), x.iter().copied())
}

/// Returns the smallest absolute value, or infinity if there is none.
#[must_use]
pub fn amin<T: Element>(x: &[T]) -> T {
    let smaller = |least: T, x: &T| if least.is_nan() || x.abs() >= least { least } else { x.abs() };
    settle(x.iter().fold(T::INFINITY, smaller), x.iter().copied())
}

/// Returns the inner product.
#[must_use]
pub fn dot<T: Element>(x: &[T], y: &[T]) -> T {
    assert_eq!(x.len(), y.len());
    let [dot] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| x[i].mul_add(y[i], sum))]);
    settle(dot, x.iter().zip(y).flat_map(|(x, y)| [*x, *y]))
}

/// Returns the sum of `x[i] * y[i]`.
#[must_use]
pub fn dotu<T: Element>(x: &[Complex<T>], y: &[Complex<T>]) -> Complex<T> {
    let [re_re, im_im, re_im, im_re] = products(x, y);
    settle_complex(Complex { re: re_re - im_im, im: re_im + im_re }, x, y)
}

/// Returns the sum of the conjugate of `x[i]` times `y[i]`.
#[must_use]
pub fn dotc<T: Element>(x: &[Complex<T>], y: &[Complex<T>]) -> Complex<T> {
    let [re_re, im_im, re_im, im_re] = products(x, y);
    settle_complex(Complex { re: re_re + im_im, im: re_im - im_re }, x, y)
}

/// Computes `y[i] = a * x[i] + y[i]`, rounded once, or does nothing if `a` is zero, as in BLAS.
pub fn axpy<T: Element>(a: T, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len());
    if a == T::ZERO {
        return;
    }
    for (x, y) in x.iter().zip(y) {
        *y = settle(a.mul_add(*x, *y), [a, *x, *y]);
    }
}

/// Returns the sum of the squares of `x[i] * scale`, or of `x[i]` without `scale`. If it is a NaN, the caller replaces
/// it by the rule for NaN results ([`settle`]).
fn squares<T: Element>(x: &[T], scale: Option<T>) -> T {
    let at = |i: usize| scale.map_or(x[i], |scale| x[i] * scale);
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| at(i).mul_add(at(i), sum))]);
    sum
}

/// Returns the four sums of products of a real or imaginary part of `x` with one of `y`.
fn products<T: Element>(x: &[Complex<T>], y: &[Complex<T>]) -> [T; 4] {
    assert_eq!(x.len(), y.len());
    let count = T::LANES / 4;
    parts(x.len(), |part| {
        [
            lanes(part.clone(), count, |sum, i| x[i].re.mul_add(y[i].re, sum)),
            lanes(part.clone(), count, |sum, i| x[i].im.mul_add(y[i].im, sum)),
            lanes(part.clone(), count, |sum, i| x[i].re.mul_add(y[i].im, sum)),
            lanes(part, count, |sum, i| x[i].im.mul_add(y[i].re, sum)),
        ]
    })
}

/// Divides `n` elements into parts, and adds the parts' sums, for `K` sums at once (rules 1 and 4 at the head of this
/// file).
fn parts<T: Element, const K: usize>(n: usize, part: impl Fn(Range<usize>) -> [T; K]) -> [T; K] {
    let len = part_len::<T>(n).max(1);
    let each: Vec<[T; K]> = (0..n).step_by(len).map(|start| part(start..n.min(start + len))).collect();
    core::array::from_fn(|k| match each.as_slice() {
        [only] => only[k] + T::ZERO,
        each => lanes(0..each.len(), T::LANES, |sum: T, i| sum + each[i][k]) + T::ZERO,
    })
}

/// Adds the elements of one part in `count` lanes, and then the lanes (rules 2 and 3 at the head of this file).
fn lanes<T: Element>(part: Range<usize>, count: usize, add: impl Fn(T, usize) -> T) -> T {
    let mut lanes = vec![T::ZERO; count];
    for i in part.clone() {
        let lane = (i - part.start) % count;
        lanes[lane] = add(lanes[lane], i);
    }
    let mut width = count / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] = lanes[k] + lanes[k + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Returns `result`, or, if it is a NaN, what the rule for NaN results at the head of this file says.
pub(crate) fn settle<T: Element>(result: T, inputs: impl IntoIterator<Item = T>) -> T {
    if !result.is_nan() {
        return result;
    }
    inputs.into_iter().find(|input| input.is_nan()).map_or(T::NAN, T::quiet)
}

fn settle_complex<T: Element>(result: Complex<T>, x: &[Complex<T>], y: &[Complex<T>]) -> Complex<T> {
    let inputs = || x.iter().zip(y).flat_map(|(x, y)| [x.re, x.im, y.re, y.im]);
    Complex { re: settle(result.re, inputs()), im: settle(result.im, inputs()) }
}
