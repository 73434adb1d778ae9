//! Describes the kernels of one instruction set as a table of functions.

use crate::{Complex, Element, Vector, VectorMut};

/// The kernels of one instruction set for one element type. They know neither parts nor the rule for NaN results:
/// `kernels.rs` adds both.
///
/// Functions with pointer arguments require that the given number of contiguous elements can be read at each pointer
/// (and, in `axpy`, written at the second), and that two vectors have the same length.
#[derive(Clone, Copy)]
pub(crate) struct KernelTable<T: 'static> {
    pub(crate) sum: unsafe fn(*const T, usize) -> T,
    pub(crate) asum: unsafe fn(*const T, usize) -> T,
    pub(crate) sumsq: unsafe fn(*const T, usize) -> T,
    /// Does the same as `sumsq`, and is faster for vectors that exceed the second-level cache.
    pub(crate) sumsq_far: unsafe fn(*const T, usize) -> T,
    pub(crate) dot: unsafe fn(*const T, *const T, usize) -> T,
    /// Returns the real and imaginary part of an inner product of complex numbers, the first vector conjugated if the
    /// last argument says so. The vectors are at most one part long, because the products of several parts are summed
    /// before they are combined.
    pub(crate) dot_complex: unsafe fn(*const T, *const T, usize, bool) -> (T, T),
    /// Returns four sums over complex numbers: real times real, imaginary times imaginary, real times imaginary, and
    /// imaginary times real.
    pub(crate) products: unsafe fn(*const T, *const T, usize) -> [T; 4],
    pub(crate) axpy: unsafe fn(T, *const T, *mut T, usize),
    pub(crate) strided: Strided<T>,
}

/// Combines the result of [`KernelTable::products`] to the real and imaginary part of an inner product, in which zeros
/// are positive.
#[inline(always)]
pub(crate) fn of_products<T: Element>(products: [T; 4], conjugate: bool) -> (T, T) {
    let [re_re, im_im, re_im, im_re] = products;
    let (re, im) = if conjugate {
        core::hint::cold_path(); // lets the usual case fall through
        (re_re + im_im, re_im - im_re)
    } else {
        (re_re - im_im, re_im + im_re)
    };
    (re + T::ZERO, im + T::ZERO)
}

/// A function that returns the four sums of products of complex vectors, as [`KernelTable::products`] does.
type Products<T> = unsafe fn(Vector<'_, Complex<T>>, Vector<'_, Complex<T>>) -> [T; 4];

/// The kernels for vectors with any step.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T: 'static> {
    pub(crate) sum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) asum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) sumsq: unsafe fn(Vector<'_, T>) -> T,
    /// Returns the sum of the squares of each element times the second argument.
    pub(crate) sumsq_scaled: unsafe fn(Vector<'_, T>, T) -> T,
    /// Returns the smallest and the largest absolute value; those of no elements are infinity and zero. The largest is
    /// a NaN if an element is one, and the smallest is not.
    pub(crate) extremes: unsafe fn(Vector<'_, T>) -> [T; 2],
    pub(crate) dot: unsafe fn(Vector<'_, T>, Vector<'_, T>) -> T,
    pub(crate) products: Products<T>,
    pub(crate) axpy: unsafe fn(T, Vector<'_, T>, &VectorMut<'_, T>),
}
