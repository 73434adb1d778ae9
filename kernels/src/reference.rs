//! What every kernel must give, to the bit: plain code over fixed lanes and a fixed tree.
//!
//! # The order
//! 1. A vector of more than [`PART`] elements is cut into at most [`PARTS`] equal parts; where, depends on
//!    its length alone (see [`part_len`]).
//! 2. Within a part, element `i` goes to lane `i mod L`, in order. `L` is [`Element::LANES`] (64 of `f64`,
//!    128 of `f32`) for real numbers, a quarter of it for complex ones. Every lane starts at `+0.0`.
//!    Products are added by one fused operation, rounded once.
//! 3. The lanes are added in halves: lane `k` and lane `k + L/2`, then `k` and `k + L/4`, … down to one.
//! 4. The parts' results are summed in the same way, as a vector of theirs. At the end `+0.0` is added, so
//!    that a zero is positive.
//!
//! # What is not a number
//! A result that is not a number is the first NaN among the inputs (`x[0]`, `y[0]`, `x[1]`, …; the real
//! part before the imaginary), quiet, its sign and payload kept: R's `NA` stays `NA`. When no input is a NaN
//! (`inf - inf`, `0 * inf`), it is [`Element::NAN`]. For `axpy` the inputs are `a`, `x[i]`, `y[i]`.
//!
//! # Rounding
//! Every step is one correctly rounded operation of IEEE 754, so that in other rounding modes, and when
//! subnormal numbers are flushed to zero, instruction sets with a fused multiply-add agree as well, though
//! on other bits, and a zero may be negative. Without one, fused operations are the C library's, whose
//! behaviour in such modes is its own.

use crate::{Complex, Element};
use core::ops::Range;

/// Vectors up to this length are one part.
pub const PART: usize = 32 * 1024;
/// There are never more parts.
pub const PARTS: usize = 256;

/// The length of every part but the last, which is the rest; a multiple of the lanes.
#[must_use]
pub fn part_len<T: Element>(n: usize) -> usize {
    if n <= PART { n } else { n.div_ceil(n.div_ceil(PART).min(PARTS)).next_multiple_of(T::LANES) }
}

/// The sum of `x`.
#[must_use]
pub fn sum<T: Element>(x: &[T]) -> T {
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| sum + x[i])]);
    settle(sum, x.iter().copied())
}

/// The sum of absolute values.
#[must_use]
pub fn asum<T: Element>(x: &[T]) -> T {
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| sum + x[i].abs())]);
    settle(sum, x.iter().copied())
}

/// The sum of squares.
#[must_use]
pub fn sumsq<T: Element>(x: &[T]) -> T {
    settle(squares(x, None), x.iter().copied())
}

/// The root of the sum of squares, which neither overflows nor underflows on the way.
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

/// The inner product.
#[must_use]
pub fn dot<T: Element>(x: &[T], y: &[T]) -> T {
    assert_eq!(x.len(), y.len());
    let [dot] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| x[i].mul_add(y[i], sum))]);
    settle(dot, x.iter().zip(y).flat_map(|(x, y)| [*x, *y]))
}

/// The sum of `x[i] * y[i]`.
#[must_use]
pub fn dotu<T: Element>(x: &[Complex<T>], y: &[Complex<T>]) -> Complex<T> {
    let [re_re, im_im, re_im, im_re] = products(x, y);
    settle_complex(Complex { re: re_re - im_im, im: re_im + im_re }, x, y)
}

/// The sum of `x[i]`, conjugated, times `y[i]`.
#[must_use]
pub fn dotc<T: Element>(x: &[Complex<T>], y: &[Complex<T>]) -> Complex<T> {
    let [re_re, im_im, re_im, im_re] = products(x, y);
    settle_complex(Complex { re: re_re + im_im, im: re_im - im_re }, x, y)
}

/// `y[i] = a * x[i] + y[i]`, rounded once; nothing when `a` is zero, as in BLAS.
pub fn axpy<T: Element>(a: T, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len());
    if a == T::ZERO {
        return;
    }
    for (x, y) in x.iter().zip(y) {
        *y = settle(a.mul_add(*x, *y), [a, *x, *y]);
    }
}

/// The sum of squares before it is settled, of the numbers or of them times `scale`.
fn squares<T: Element>(x: &[T], scale: Option<T>) -> T {
    let at = |i: usize| scale.map_or(x[i], |scale| x[i] * scale);
    let [sum] = parts(x.len(), |part| [lanes(part, T::LANES, |sum, i| at(i).mul_add(at(i), sum))]);
    sum
}

/// The four sums of products of a real or imaginary part of `x` and of `y`.
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

/// Rules 1 and 4: `K` sums at once.
fn parts<T: Element, const K: usize>(n: usize, part: impl Fn(Range<usize>) -> [T; K]) -> [T; K] {
    let len = part_len::<T>(n).max(1);
    let each: Vec<[T; K]> = (0..n).step_by(len).map(|start| part(start..n.min(start + len))).collect();
    core::array::from_fn(|k| match each.as_slice() {
        [only] => only[k] + T::ZERO,
        each => lanes(0..each.len(), T::LANES, |sum: T, i| sum + each[i][k]) + T::ZERO,
    })
}

/// Rules 2 and 3.
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

/// A NaN by the rule for those.
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
