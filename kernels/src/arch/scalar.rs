//! Defines the portable kernels, compiled for the instructions that every processor of the architecture has.

use super::portable;
use crate::table::{KernelTable, Strided, of_products};
use crate::{Complex, Element, Vector, VectorMut};

pub(super) static F64: KernelTable<f64> = F64_FUNCTIONS;
pub(super) static F32: KernelTable<f32> = F32_FUNCTIONS;

macro_rules! functions {
    ($t:ty) => {{
        // SAFETY (of every `from_raw` here): the caller's promise.
        fn vector<'a, E>(x: *const E, n: usize) -> Vector<'a, E> {
            // SAFETY: as above.
            unsafe { Vector::from_raw(x, 1, n) }
        }
        fn products(x: *const $t, y: *const $t, n: usize) -> [$t; 4] {
            let (x, y) = (x.cast::<Complex<$t>>(), y.cast::<Complex<$t>>());
            portable::products::<$t, { <$t>::LANES / 4 }>(vector(x, n), vector(y, n))
        }
        KernelTable {
            sum: |x, n| portable::sum::<$t, { <$t>::LANES }>(vector(x, n)),
            asum: |x, n| portable::asum::<$t, { <$t>::LANES }>(vector(x, n)),
            sumsq: |x, n| portable::sumsq::<$t, { <$t>::LANES }>(vector(x, n)),
            sumsq_far: |x, n| portable::sumsq::<$t, { <$t>::LANES }>(vector(x, n)),
            dot: |x, y, n| portable::dot::<$t, { <$t>::LANES }>(vector(x, n), vector(y, n)),
            dot_complex: |x, y, n, conjugate| of_products(products(x, y, n), conjugate),
            products,
            axpy: |a, x, y, n| {
                // SAFETY: as above.
                portable::axpy(a, vector(x, n), &unsafe { VectorMut::from_raw(y, 1, n) });
            },
            strided: Strided {
                sum: portable::sum::<$t, { <$t>::LANES }>,
                asum: portable::asum::<$t, { <$t>::LANES }>,
                sumsq: portable::sumsq::<$t, { <$t>::LANES }>,
                sumsq_scaled: portable::sumsq_scaled::<$t, { <$t>::LANES }>,
                extremes: portable::extremes::<$t>,
                dot: portable::dot::<$t, { <$t>::LANES }>,
                products: portable::products::<$t, { <$t>::LANES / 4 }>,
                axpy: portable::axpy::<$t>,
            },
        }
    }};
}

/// The portable kernels for `f64`, from which instruction sets that accelerate only some kernels take the others.
pub(super) const F64_FUNCTIONS: KernelTable<f64> = functions!(f64);
/// The portable kernels for `f32`, from which instruction sets that accelerate only some kernels take the others.
pub(super) const F32_FUNCTIONS: KernelTable<f32> = functions!(f32);
