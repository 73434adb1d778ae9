//! Defines the kernels for SSE2: thirty-two registers of 16 bytes hold the lanes, eight registers at a time. Only
//! `sum` and `asum` use them. All other kernels need a fused multiply-add, and are the portable code, which calls the
//! C library for it.

use super::prelude::*;
use super::scalar;
use core::arch::asm;
use core::arch::x86_64::*;

macro_rules! sums {
    ($t:ty, $v:ty, $rest:expr) => {{
        by_length!("sse2", fn sum(x: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_one::<$v, Itself, 16>(x, n),
            else reduce::one::<$v, Itself, 32, 8, 1>(x, n),
        });
        by_length!("sse2", fn asum(x: *const $t, n: usize) -> $t {
            if n <= <$t>::LANES / 2 => reduce::short_one::<$v, Absolute, 16>(x, n),
            else reduce::one::<$v, Absolute, 32, 8, 1>(x, n),
        });
        KernelTable { sum, asum, ..$rest }
    }};
}

/// The half-open range of lanes that a masked load reads.
type Range = (usize, usize);

impl Simd for __m128d {
    type Element = f64;
    type Mask = Range;
    const COUNT: usize = 2;

    methods! {
        fn zero() -> Self { _mm_setzero_pd() }
        fn splat(value: f64) -> Self { _mm_set1_pd(value) }
        fn load(from: *const f64) -> Self { _mm_loadu_pd(from) }
        fn store(self, to: *mut f64) -> () { _mm_storeu_pd(to, self) }
        fn add(self, other: Self) -> Self { _mm_add_pd(self, other) }
        fn abs(self) -> Self { _mm_andnot_pd(_mm_set1_pd(-0.0), self) }
        fn swap_pairs(self) -> Self { _mm_shuffle_pd::<0b01>(self, self) }
        fn mask(from: usize, to: usize) -> Range { (from, to) }
        fn load_masked(from: *const f64, mask: Range) -> Self { load_some(from, mask) }
        fn tree_pair(self) -> [f64; 2] {
            [_mm_cvtsd_f64(self), _mm_cvtsd_f64(_mm_unpackhi_pd(self, self))]
        }
    }
}

impl Simd for __m128 {
    type Element = f32;
    type Mask = Range;
    const COUNT: usize = 4;

    methods! {
        fn zero() -> Self { _mm_setzero_ps() }
        fn splat(value: f32) -> Self { _mm_set1_ps(value) }
        fn load(from: *const f32) -> Self { _mm_loadu_ps(from) }
        fn store(self, to: *mut f32) -> () { _mm_storeu_ps(to, self) }
        fn add(self, other: Self) -> Self { _mm_add_ps(self, other) }
        fn abs(self) -> Self { _mm_andnot_ps(_mm_set1_ps(-0.0), self) }
        fn swap_pairs(self) -> Self { _mm_shuffle_ps::<0b10_11_00_01>(self, self) }
        fn mask(from: usize, to: usize) -> Range { (from, to) }
        fn load_masked(from: *const f32, mask: Range) -> Self { load_some(from, mask) }
        fn tree_pair(self) -> [f32; 2] {
            // The upper lanes add the same numbers as the lower ones: the compiler could otherwise add unrelated
            // numbers in lanes that are not read, and these may overflow.
            let two = _mm_add_ps(self, opaque(_mm_shuffle_ps::<0b01_00_11_10>(self, self)));
            [_mm_cvtss_f32(two), _mm_cvtss_f32(_mm_shuffle_ps::<1>(two, two))]
        }
    }
}

/// Returns the register unchanged. The compiler cannot know that some of its lanes will not be read, and must compute
/// all.
#[inline(always)]
fn opaque(mut lanes: __m128) -> __m128 {
    // SAFETY: the assembly has no instruction.
    unsafe { asm!("/* {0} */", inout(xmm_reg) lanes, options(pure, nomem, nostack, preserves_flags)) };
    lanes
}

pub(super) static F64: KernelTable<f64> = sums!(f64, __m128d, scalar::F64_FUNCTIONS);
pub(super) static F32: KernelTable<f32> = sums!(f32, __m128, scalar::F32_FUNCTIONS);
