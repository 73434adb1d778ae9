//! Defines the kernels for AVX2 with FMA: sixteen registers of 32 bytes hold the lanes, eight registers at a time. For
//! long vectors all sixteen are used at a time. That leaves no register for other values, but reads cache lines in
//! order, so that the processor prefetches more. A plain sum needs no other register, and does so from two rows on.

use super::prelude::*;
use core::arch::x86_64::*;

pub(super) static F64: KernelTable<f64> = fused!(f64, "avx2,fma", __m256d, lanes 16, at_once 8, long __m256d, lanes 16, at_once 16, reads 1, from dot 256, sum 2, asum 256, sumsq 256, complex 512, axpy 6 of __m256d, Crossing);
pub(super) static F32: KernelTable<f32> = fused!(f32, "avx2,fma", __m256, lanes 16, at_once 8, long __m256, lanes 16, at_once 16, reads 1, from dot 256, sum 2, asum 256, sumsq 256, complex 512, axpy 6 of __m256, Crossing);

impl Simd for __m256d {
    type Element = f64;
    type Mask = __m256i;
    const COUNT: usize = 4;

    methods! {
        fn zero() -> Self { _mm256_setzero_pd() }
        fn splat(value: f64) -> Self { _mm256_set1_pd(value) }
        fn load(from: *const f64) -> Self { _mm256_loadu_pd(from) }
        fn store(self, to: *mut f64) -> () { _mm256_storeu_pd(to, self) }
        fn add(self, other: Self) -> Self { _mm256_add_pd(self, other) }
        fn abs(self) -> Self { _mm256_andnot_pd(_mm256_set1_pd(-0.0), self) }
        fn swap_pairs(self) -> Self { _mm256_permute_pd::<0b0101>(self) }
        fn mask(from: usize, to: usize) -> __m256i {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_andnot_si256(
                _mm256_cmpgt_epi64(_mm256_set1_epi64x(from as i64), lanes),
                _mm256_cmpgt_epi64(_mm256_set1_epi64x(to as i64), lanes),
            )
        }
        fn load_masked(from: *const f64, mask: __m256i) -> Self { _mm256_maskload_pd(from, mask) }
        fn tree_pair(self) -> [f64; 2] {
            let pair = _mm_add_pd(_mm256_castpd256_pd128(self), _mm256_extractf128_pd::<1>(self));
            pair.tree_pair()
        }
    }
}

impl Fused for __m256d {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { _mm256_fmadd_pd(self, b, c) }
    }
}

impl Nans for __m256d {
    methods! {
        fn nans(a: Self, b: Self) -> Self { _mm256_cmp_pd::<_CMP_UNORD_Q>(a, b) }
        fn or(self, other: Self) -> Self { _mm256_or_pd(self, other) }
        fn any(self) -> bool { _mm256_movemask_pd(self) != 0 }
    }
}

impl Simd for __m256 {
    type Element = f32;
    type Mask = __m256i;
    const COUNT: usize = 8;

    methods! {
        fn zero() -> Self { _mm256_setzero_ps() }
        fn splat(value: f32) -> Self { _mm256_set1_ps(value) }
        fn load(from: *const f32) -> Self { _mm256_loadu_ps(from) }
        fn store(self, to: *mut f32) -> () { _mm256_storeu_ps(to, self) }
        fn add(self, other: Self) -> Self { _mm256_add_ps(self, other) }
        fn abs(self) -> Self { _mm256_andnot_ps(_mm256_set1_ps(-0.0), self) }
        fn swap_pairs(self) -> Self { _mm256_permute_ps::<0b10_11_00_01>(self) }
        fn mask(from: usize, to: usize) -> __m256i {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_andnot_si256(
                _mm256_cmpgt_epi32(_mm256_set1_epi32(from as i32), lanes),
                _mm256_cmpgt_epi32(_mm256_set1_epi32(to as i32), lanes),
            )
        }
        fn load_masked(from: *const f32, mask: __m256i) -> Self { _mm256_maskload_ps(from, mask) }
        fn tree_pair(self) -> [f32; 2] {
            let four = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            four.tree_pair()
        }
    }
}

impl Fused for __m256 {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { _mm256_fmadd_ps(self, b, c) }
    }
}

impl Nans for __m256 {
    methods! {
        fn nans(a: Self, b: Self) -> Self { _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b) }
        fn or(self, other: Self) -> Self { _mm256_or_ps(self, other) }
        fn any(self) -> bool { _mm256_movemask_ps(self) != 0 }
    }
}
