//! Defines the terms of a sum: what is read at each position of the vectors, and how it is added.

use super::simd::{Fused, Shifts, Simd};
use super::sums::{Pair, Single, Sums};
use core::marker::PhantomData;

/// The terms of a sum, read from elements in memory at positions counted from an address.
///
/// # Safety of every method
/// The processor has the instruction set, and the elements at the positions that are read exist.
pub(super) trait Terms: Copy {
    type Sums: Sums;
    /// The elements of one register of each vector.
    type Read: Copy;
    /// Reads the elements of one register of each vector from position `at` on.
    unsafe fn read(self, at: usize) -> Self::Read;
    /// Returns the first sums of a register's lanes, made of the first elements. (Adding these to zero would differ in
    /// the sign of a zero only, which the reference makes positive in the end.)
    unsafe fn begin(first: Self::Read) -> Self::Sums;
    unsafe fn add(sums: Self::Sums, next: Self::Read) -> Self::Sums;
}

/// Terms that can also be read at the first and last positions of a vector, where a register is not full.
pub(super) trait Edges: Terms {
    /// Reads the elements at the mask's positions, counted from `at`, and sets the others to zero. No other element is
    /// read.
    unsafe fn read_masked(self, at: usize, mask: Mask<Self>) -> Self::Read;
}

/// A selection of lanes of the registers that hold the terms `E`.
pub(super) type Mask<E> = <<<E as Terms>::Sums as Sums>::Simd as Simd>::Mask;

/// A function that is applied to each element before it is added.
pub(super) trait Map<V: Simd> {
    unsafe fn begin(x: V) -> V;
    unsafe fn add(sums: V, x: V) -> V;
}

/// Returns the element itself.
pub(super) struct Itself;
/// Returns the absolute value of the element.
pub(super) struct Absolute;
/// Returns the square of the element.
pub(super) struct Square;

impl<V: Simd> Map<V> for Itself {
    #[inline(always)]
    unsafe fn begin(x: V) -> V {
        x
    }

    #[inline(always)]
    unsafe fn add(sums: V, x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { sums.add(x) }
    }
}

impl<V: Simd> Map<V> for Absolute {
    #[inline(always)]
    unsafe fn begin(x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { x.abs() }
    }

    #[inline(always)]
    unsafe fn add(sums: V, x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { sums.add(x.abs()) }
    }
}

impl<V: Fused> Map<V> for Square {
    #[inline(always)]
    unsafe fn begin(x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { x.mul_add(x, V::zero()) }
    }

    #[inline(always)]
    unsafe fn add(sums: V, x: V) -> V {
        // SAFETY: the caller's promise.
        unsafe { x.mul_add(x, sums) }
    }
}

/// The terms `M(x[i])` of one vector.
pub(super) struct One<V: Simd, M>(pub(super) *const V::Element, pub(super) PhantomData<M>);
/// The terms `x[i] * y[i]` of two vectors.
pub(super) struct Two<V: Simd>(pub(super) *const V::Element, pub(super) *const V::Element);
/// The terms of the product of two complex vectors. Each complex number takes two positions.
pub(super) struct TwoComplex<V: Simd>(pub(super) *const V::Element, pub(super) *const V::Element);
/// The terms `x[i] * y[i]` of two vectors of different alignment. The second vector is read by aligned loads: it
/// starts `by` elements after the given aligned address. Reads extend to the end of the register with the last element
/// that is asked for.
pub(super) struct Apart<V: Simd, S: Shifts<V>>(pub(super) Two<V>, pub(super) S::By);

impl<V: Simd, M: Map<V>> Terms for One<V, M> {
    type Sums = Single<V>;
    type Read = V;

    #[inline(always)]
    unsafe fn read(self, at: usize) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load(self.0.wrapping_add(at)) }
    }

    #[inline(always)]
    unsafe fn begin(x: V) -> Single<V> {
        // SAFETY: the caller's promise.
        Single(unsafe { M::begin(x) })
    }

    #[inline(always)]
    unsafe fn add(sums: Single<V>, x: V) -> Single<V> {
        // SAFETY: the caller's promise.
        Single(unsafe { M::add(sums.0, x) })
    }
}

impl<V: Simd, M: Map<V>> Edges for One<V, M> {
    #[inline(always)]
    unsafe fn read_masked(self, at: usize, mask: V::Mask) -> V {
        // SAFETY: the caller's promise.
        unsafe { V::load_masked(self.0.wrapping_add(at), mask) }
    }
}

impl<V: Fused> Terms for Two<V> {
    type Sums = Single<V>;
    type Read = (V, V);

    #[inline(always)]
    unsafe fn read(self, at: usize) -> (V, V) {
        // SAFETY: the caller's promise.
        unsafe { (V::load(self.0.wrapping_add(at)), V::load(self.1.wrapping_add(at))) }
    }

    #[inline(always)]
    unsafe fn begin((x, y): (V, V)) -> Single<V> {
        // SAFETY: the caller's promise.
        Single(unsafe { x.mul_add(y, V::zero()) })
    }

    #[inline(always)]
    unsafe fn add(sums: Single<V>, (x, y): (V, V)) -> Single<V> {
        // SAFETY: the caller's promise.
        Single(unsafe { x.mul_add(y, sums.0) })
    }
}

impl<V: Fused> Edges for Two<V> {
    #[inline(always)]
    unsafe fn read_masked(self, at: usize, mask: V::Mask) -> (V, V) {
        // SAFETY: the caller's promise.
        unsafe {
            (V::load_masked(self.0.wrapping_add(at), mask), V::load_masked(self.1.wrapping_add(at), mask))
        }
    }
}

impl<V: Fused, S: Shifts<V>> Terms for Apart<V, S> {
    type Sums = Single<V>;
    type Read = (V, V);

    #[inline(always)]
    unsafe fn read(self, at: usize) -> (V, V) {
        let Apart(Two(x, y), by) = self;
        // SAFETY: the caller's promise.
        unsafe {
            let (low, high) = (V::load(y.wrapping_add(at)), V::load(y.wrapping_add(at + V::COUNT)));
            (V::load(x.wrapping_add(at)), S::shifted(low, high, by))
        }
    }

    #[inline(always)]
    unsafe fn begin(first: (V, V)) -> Single<V> {
        // SAFETY: the caller's promise.
        unsafe { Two::begin(first) }
    }

    #[inline(always)]
    unsafe fn add(sums: Single<V>, next: (V, V)) -> Single<V> {
        // SAFETY: the caller's promise.
        unsafe { Two::add(sums, next) }
    }
}

impl<V: Fused> Terms for TwoComplex<V> {
    type Sums = Pair<V>;
    type Read = (V, V);

    #[inline(always)]
    unsafe fn read(self, at: usize) -> (V, V) {
        // SAFETY: the caller's promise.
        unsafe { Two(self.0, self.1).read(at) }
    }

    #[inline(always)]
    unsafe fn begin(first: (V, V)) -> Pair<V> {
        // SAFETY: the caller's promise.
        unsafe { Self::add(Pair::zero(), first) }
    }

    #[inline(always)]
    unsafe fn add(sums: Pair<V>, (x, y): (V, V)) -> Pair<V> {
        // SAFETY: the caller's promise.
        unsafe { Pair(x.mul_add(y, sums.0), x.mul_add(y.swap_pairs(), sums.1)) }
    }
}

impl<V: Fused> Edges for TwoComplex<V> {
    #[inline(always)]
    unsafe fn read_masked(self, at: usize, mask: V::Mask) -> (V, V) {
        // SAFETY: the caller's promise.
        unsafe { Two(self.0, self.1).read_masked(at, mask) }
    }
}

// `derive` would require that `V` and `M` be `Copy` instead of the pointers.
macro_rules! copy {
    ($($type:ident<$($parameter:ident $(: $bound:path)?),*>),*) => {
        $(
            impl<V: Simd, $($parameter $(: $bound)?),*> Clone for $type<V, $($parameter),*> {
                #[inline(always)]
                fn clone(&self) -> Self {
                    *self
                }
            }
            impl<V: Simd, $($parameter $(: $bound)?),*> Copy for $type<V, $($parameter),*> {}
        )*
    };
}
copy!(One<M>, Two<>, TwoComplex<>, Apart<S: Shifts<V>>);
