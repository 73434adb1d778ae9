//! Describes the kernels of one instruction set as a table of functions.

use crate::{Complex, Element, Vector, VectorMut};

/// Points to the kernels for one element type. They know neither parts nor the rule for NaN results, which `kernels.rs`
/// adds.
///
/// Functions with pointer arguments require that the given number of contiguous elements can be read there (by `axpy`
/// written at the last), and that two vectors have the same length.
#[derive(Clone, Copy)]
pub(crate) struct KernelTable<T: 'static> {
    pub(crate) sum: unsafe fn(*const T, usize) -> T,
    pub(crate) asum: unsafe fn(*const T, usize) -> T,
    pub(crate) sumsq: unsafe fn(*const T, usize) -> T,
    /// Does the same as `sumsq`, for vectors in parts that exceed the second-level cache.
    pub(crate) sumsq_far: unsafe fn(*const T, usize) -> T,
    pub(crate) dot: unsafe fn(*const T, *const T, usize) -> T,
    /// Returns the real and imaginary part of an inner product of complex numbers, the first vector conjugated or not.
    /// The vectors are at most one part long: sums of products of several parts are added before they are combined.
    pub(crate) dot_complex: unsafe fn(*const T, *const T, usize, bool) -> (T, T),
    /// Returns four sums over complex numbers: real times real, imaginary times imaginary, real times imaginary, and
    /// imaginary times real.
    pub(crate) products: unsafe fn(*const T, *const T, usize) -> [T; 4],
    pub(crate) axpy: unsafe fn(T, *const T, *mut T, usize),
    pub(crate) strided: Strided<T>,
}

/// Combines the result of [`KernelTable::products`] to a complex number, in which zeros are positive.
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

/// Returns the four sums of products of complex vectors.
type Products<T> = unsafe fn(Vector<'_, Complex<T>>, Vector<'_, Complex<T>>) -> [T; 4];

/// Points to the kernels for vectors with any step.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T: 'static> {
    pub(crate) sum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) asum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) sumsq: unsafe fn(Vector<'_, T>) -> T,
    /// Returns the sum of squares of the elements times the second argument.
    pub(crate) sumsq_scaled: unsafe fn(Vector<'_, T>, T) -> T,
    /// Returns the smallest and the largest absolute value; those of no elements are infinity and zero. The largest is
    /// a NaN if an element is one, and the smallest is not.
    pub(crate) extremes: unsafe fn(Vector<'_, T>) -> [T; 2],
    pub(crate) dot: unsafe fn(Vector<'_, T>, Vector<'_, T>) -> T,
    pub(crate) products: Products<T>,
    pub(crate) axpy: unsafe fn(T, Vector<'_, T>, &VectorMut<'_, T>),
}
