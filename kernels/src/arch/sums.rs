//! What the lanes of a sum are kept in: one register of each row's position, or two.

use super::simd::Simd;

/// # Safety of every method
/// The processor has the instruction set.
pub(super) trait Sums: Copy {
    type Simd: Simd;
    type Output;

    unsafe fn zero() -> Self;
    /// One step of the tree.
    unsafe fn join(self, other: Self) -> Self;
    /// The tree below one register.
    unsafe fn finish(self) -> Self::Output;
}

/// A real sum.
#[derive(Clone, Copy)]
pub(super) struct Single<V>(pub(super) V);

/// Products of complex numbers: part times same part, part times other part.
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
    /// Real times real, imaginary times imaginary, real times imaginary, imaginary times real.
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
