//! Defines the sums that a loop keeps: one register of them, or two, for each register of a row.

use super::simd::Simd;

/// The sums that belong to the lanes of one register of a row. All methods require that the processor has the
/// instruction set.
pub(super) trait Sums: Copy {
    type Simd: Simd;
    type Output;

    unsafe fn zero() -> Self;
    /// Adds the sums that belong to another register: one step of the tree.
    unsafe fn join(self, other: Self) -> Self;
    /// Adds the sums within the register: the last steps of the tree.
    unsafe fn finish(self) -> Self::Output;
}

/// A register of sums of real numbers.
#[derive(Clone, Copy)]
pub(super) struct Single<V>(pub(super) V);

/// Two registers of sums of products of complex numbers: in the first, of real times real and imaginary times
/// imaginary parts; in the second, of real times imaginary and imaginary times real parts.
#[derive(Clone, Copy)]
pub(super) struct Pair<V>(pub(super) V, pub(super) V);

impl<V: Simd> Sums for Single<V> {
    type Simd = V;
    type Output = V::Element;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's promise.
        Single(unsafe { V::zero() })
    }

    #[inline(always)]
    unsafe fn join(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        Single(unsafe { self.0.add(other.0) })
    }

    #[inline(always)]
    unsafe fn finish(self) -> V::Element {
        // SAFETY: the caller's promise.
        unsafe { self.0.tree() }
    }
}

impl<V: Simd> Sums for Pair<V> {
    type Simd = V;
    /// The four numbers are the sums of real times real, imaginary times imaginary, real times imaginary, and imaginary
    /// times real.
    type Output = [V::Element; 4];

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller's promise.
        unsafe { Pair(V::zero(), V::zero()) }
    }

    #[inline(always)]
    unsafe fn join(self, other: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Pair(self.0.add(other.0), self.1.add(other.1)) }
    }

    #[inline(always)]
    unsafe fn finish(self) -> [V::Element; 4] {
        // SAFETY: the caller's promise.
        let ([re_re, im_im], [re_im, im_re]) = unsafe { (self.0.tree_pair(), self.1.tree_pair()) };
        [re_re, im_im, re_im, im_re]
    }
}
