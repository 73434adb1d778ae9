//! Defines the kernels for AVX-512 (F and VL): eight registers of 64 bytes hold the lanes. For long vectors sixteen
//! registers of 32 bytes do: Zen 4 takes 1.09 cycles for a load of 64 bytes along with other work and 1.03 for two of
//! 32, and two loads in a cache line make the processor prefetch more. A vector counts as long from the number of rows
//! at which this gains more time than the smaller registers lose in the first and last row. `axpy` also uses registers
//! of 32 bytes, because stores of 64 bytes are slower.

use super::prelude::*;
use super::simd::Shifts;
use core::arch::x86_64::*;
use core::hint::black_box;

pub(super) static F64: KernelTable<f64> = KernelTable {
    sumsq_far: sumsq_far_f64,
    ..fused!(f64, "avx512f,avx512vl,avx2,fma", __m512d, lanes 8, at_once 8, long __m256d, lanes 16, at_once 16, reads 4, from dot 4, sum 8, asum 32, sumsq 32, complex 512, axpy 8 of __m256d, Permutes)
};
pub(super) static F32: KernelTable<f32> = KernelTable {
    sumsq_far: sumsq_far_f32,
    ..fused!(f32, "avx512f,avx512vl,avx2,fma", __m512, lanes 8, at_once 8, long __m256, lanes 16, at_once 16, reads 4, from dot 4, sum 8, asum 32, sumsq 32, complex 512, axpy 8 of __m256, Permutes)
};

/// Computes `sumsq` for vectors beyond the second-level cache, as the product of the vector with itself. Each register
/// is loaded twice, which is 2 per cent faster from the third-level cache and from memory.
///
/// # Safety
/// The requirements are those of `KernelTable::sumsq`.
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
unsafe fn sumsq_far_f64(x: *const f64, n: usize) -> f64 {
    // SAFETY: the caller's promise, and this function's instruction set.
    unsafe { reduce::two::<__m512d, Crossing, 8, 8, 4>(x, black_box(x), n) }
}

/// Does the same as [`sumsq_far_f64`] for `f32`.
///
/// # Safety
/// The requirements are those of `KernelTable::sumsq`.
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
unsafe fn sumsq_far_f32(x: *const f32, n: usize) -> f32 {
    // SAFETY: the caller's promise, and this function's instruction set.
    unsafe { reduce::two::<__m512, Crossing, 8, 8, 4>(x, black_box(x), n) }
}

impl Simd for __m512d {
    type Element = f64;
    type Mask = __mmask8;
    const COUNT: usize = 8;

    methods! {
        fn zero() -> Self { _mm512_setzero_pd() }
        fn splat(value: f64) -> Self { _mm512_set1_pd(value) }
        fn load(from: *const f64) -> Self { _mm512_loadu_pd(from) }
        fn store(self, to: *mut f64) -> () { _mm512_storeu_pd(to, self) }
        fn add(self, other: Self) -> Self { _mm512_add_pd(self, other) }
        fn abs(self) -> Self { _mm512_abs_pd(self) }
        fn swap_pairs(self) -> Self { _mm512_permute_pd::<0x55>(self) }
        fn mask(from: usize, to: usize) -> __mmask8 { low_bits(from, to) as __mmask8 }
        fn load_masked(from: *const f64, mask: __mmask8) -> Self { _mm512_maskz_loadu_pd(mask, from) }
        fn tree_pair(self) -> [f64; 2] { halves_f64(self).tree_pair() }
    }
}

impl Fused for __m512d {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { _mm512_fmadd_pd(self, b, c) }
    }
}

impl Simd for __m512 {
    type Element = f32;
    type Mask = __mmask16;
    const COUNT: usize = 16;

    methods! {
        fn zero() -> Self { _mm512_setzero_ps() }
        fn splat(value: f32) -> Self { _mm512_set1_ps(value) }
        fn load(from: *const f32) -> Self { _mm512_loadu_ps(from) }
        fn store(self, to: *mut f32) -> () { _mm512_storeu_ps(to, self) }
        fn add(self, other: Self) -> Self { _mm512_add_ps(self, other) }
        fn abs(self) -> Self { _mm512_abs_ps(self) }
        fn swap_pairs(self) -> Self { _mm512_permute_ps::<0b10_11_00_01>(self) }
        fn mask(from: usize, to: usize) -> __mmask16 { low_bits(from, to) as __mmask16 }
        fn load_masked(from: *const f32, mask: __mmask16) -> Self { _mm512_maskz_loadu_ps(mask, from) }
        fn tree_pair(self) -> [f32; 2] { halves_f32(self).tree_pair() }
    }
}

impl Fused for __m512 {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { _mm512_fmadd_ps(self, b, c) }
    }
}

/// Returns a mask with bits `from..to` set.
#[inline(always)]
fn low_bits(from: usize, to: usize) -> u32 {
    (1 << to) - (1 << from)
}

/// Adds the upper half of a register to the lower: the first step of the tree within a register.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn halves_f64(sums: __m512d) -> __m256d {
    // SAFETY: the caller's promise.
    unsafe { _mm256_add_pd(_mm512_castpd512_pd256(sums), _mm512_extractf64x4_pd::<1>(sums)) }
}

/// Does the same as [`halves_f64`] for `f32`.
///
/// # Safety
/// The processor has the instruction set.
#[inline(always)]
unsafe fn halves_f32(sums: __m512) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(sums)));
        _mm256_add_ps(_mm512_castps512_ps256(sums), high)
    }
}

/// Assembles a misaligned register from two aligned ones by a permutation, an instruction that can select any lanes of
/// both.
struct Permutes;

impl Shifts<__m512d> for Permutes {
    const PAYS: bool = true;
    type By = __m512i;

    methods! {
        fn by(elements: usize) -> __m512i {
            _mm512_add_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), _mm512_set1_epi64(elements as i64))
        }
        fn shifted(low: __m512d, high: __m512d, by: __m512i) -> __m512d {
            _mm512_permutex2var_pd(low, by, high)
        }
    }
}

impl Shifts<__m512> for Permutes {
    const PAYS: bool = true;
    type By = __m512i;

    methods! {
        fn by(elements: usize) -> __m512i {
            _mm512_add_epi32(
                _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                _mm512_set1_epi32(elements as i32),
            )
        }
        fn shifted(low: __m512, high: __m512, by: __m512i) -> __m512 {
            _mm512_permutex2var_ps(low, by, high)
        }
    }
}

impl Shifts<__m256d> for Permutes {
    const PAYS: bool = true;
    type By = __m256i;

    methods! {
        fn by(elements: usize) -> __m256i {
            _mm256_add_epi64(_mm256_setr_epi64x(0, 1, 2, 3), _mm256_set1_epi64x(elements as i64))
        }
        fn shifted(low: __m256d, high: __m256d, by: __m256i) -> __m256d {
            _mm256_permutex2var_pd(low, by, high)
        }
    }
}

impl Shifts<__m256> for Permutes {
    const PAYS: bool = true;
    type By = __m256i;

    methods! {
        fn by(elements: usize) -> __m256i {
            _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(elements as i32))
        }
        fn shifted(low: __m256, high: __m256, by: __m256i) -> __m256 {
            _mm256_permutex2var_ps(low, by, high)
        }
    }
}
