//! The kernels of one instruction set, as functions.

use crate::{Complex, Element, Vector, VectorMut};

/// For one type of numbers. None looks at NaNs in a sum, none knows parts: see `kernels.rs`.
///
/// Those that take addresses: so many elements side by side can be read (of `axpy`, written at the last).
/// Two vectors have one length.
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "functions")]
pub struct Table<T: 'static> {
    pub(crate) sum: unsafe fn(*const T, usize) -> T,
    pub(crate) asum: unsafe fn(*const T, usize) -> T,
    pub(crate) sumsq: unsafe fn(*const T, usize) -> T,
    /// As `sumsq`, of vectors in parts that lie beyond the second cache.
    pub(crate) sumsq_far: unsafe fn(*const T, usize) -> T,
    pub(crate) dot: unsafe fn(*const T, *const T, usize) -> T,
    /// Of so many complex numbers, the first vector's conjugated or not: the real part, and the imaginary one. No longer than a
    /// part: in parts the products are summed before they are joined.
    pub(crate) dot_complex: unsafe fn(*const T, *const T, usize, bool) -> (T, T),
    /// Of so many complex numbers: real times real, imaginary times imaginary, real times imaginary,
    /// imaginary times real.
    pub(crate) products: unsafe fn(*const T, *const T, usize) -> [T; 4],
    pub(crate) axpy: unsafe fn(T, *const T, *mut T, usize),
    pub(crate) strided: Strided<T>,
}

/// What [`Table::products`] gives, joined; zeros are positive.
#[inline(always)]
pub(crate) fn of_products<T: Element>(products: [T; 4], conjugate: bool) -> (T, T) {
    let [re_re, im_im, re_im, im_re] = products;
    let (re, im) = if conjugate {
        core::hint::cold_path(); // the other way is straight on
        (re_re + im_im, re_im - im_re)
    } else {
        (re_re - im_im, re_im + im_re)
    };
    (re + T::ZERO, im + T::ZERO)
}

/// Of complex numbers.
type Products<T> = unsafe fn(Vector<'_, Complex<T>>, Vector<'_, Complex<T>>) -> [T; 4];

/// Of vectors with any step.
#[derive(Clone, Copy)]
pub(crate) struct Strided<T: 'static> {
    pub(crate) sum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) asum: unsafe fn(Vector<'_, T>) -> T,
    pub(crate) sumsq: unsafe fn(Vector<'_, T>) -> T,
    /// Of the numbers times the second argument.
    pub(crate) sumsq_scaled: unsafe fn(Vector<'_, T>, T) -> T,
    pub(crate) dot: unsafe fn(Vector<'_, T>, Vector<'_, T>) -> T,
    pub(crate) products: Products<T>,
    pub(crate) axpy: unsafe fn(T, Vector<'_, T>, &VectorMut<'_, T>),
}
