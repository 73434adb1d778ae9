//! Defines the kernels for NEON: thirty-two registers of 16 bytes hold the lanes, sixteen registers at a time.

use super::prelude::*;
use core::arch::aarch64::*;

pub(super) static F64: KernelTable<f64> = fused!(f64, "neon", float64x2_t, lanes 32, at_once 16, long float64x2_t, lanes 32, at_once 16, reads 1, from dot 256, sum 256, asum 256, sumsq 256, complex 512, axpy 8 of float64x2_t, Crossing);
pub(super) static F32: KernelTable<f32> = fused!(f32, "neon", float32x4_t, lanes 32, at_once 16, long float32x4_t, lanes 32, at_once 16, reads 1, from dot 256, sum 256, asum 256, sumsq 256, complex 512, axpy 8 of float32x4_t, Crossing);

/// The half-open range of lanes that a masked load reads.
type Range = (usize, usize);

impl Simd for float64x2_t {
    type Element = f64;
    type Mask = Range;
    const COUNT: usize = 2;

    methods! {
        fn zero() -> Self { vdupq_n_f64(0.0) }
        fn splat(value: f64) -> Self { vdupq_n_f64(value) }
        fn load(from: *const f64) -> Self { vld1q_f64(from) }
        fn store(self, to: *mut f64) -> () { vst1q_f64(to, self) }
        fn add(self, other: Self) -> Self { vaddq_f64(self, other) }
        fn abs(self) -> Self { vabsq_f64(self) }
        fn swap_pairs(self) -> Self { vextq_f64::<1>(self, self) }
        fn mask(from: usize, to: usize) -> Range { (from, to) }
        fn load_masked(from: *const f64, mask: Range) -> Self { load_some(from, mask) }
    }
}

impl Fused for float64x2_t {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { vfmaq_f64(c, self, b) }
    }
}

impl Nans for float64x2_t {
    methods! {
        fn nans(a: Self, b: Self) -> Self {
            // A NaN does not equal itself.
            let numbers = vandq_u64(vceqq_f64(a, a), vceqq_f64(b, b));
            vreinterpretq_f64_u64(veorq_u64(numbers, vdupq_n_u64(u64::MAX)))
        }
        fn or(self, other: Self) -> Self {
            vreinterpretq_f64_u64(vorrq_u64(vreinterpretq_u64_f64(self), vreinterpretq_u64_f64(other)))
        }
        fn any(self) -> bool { vmaxvq_u32(vreinterpretq_u32_f64(self)) != 0 }
    }
}

impl Simd for float32x4_t {
    type Element = f32;
    type Mask = Range;
    const COUNT: usize = 4;

    methods! {
        fn zero() -> Self { vdupq_n_f32(0.0) }
        fn splat(value: f32) -> Self { vdupq_n_f32(value) }
        fn load(from: *const f32) -> Self { vld1q_f32(from) }
        fn store(self, to: *mut f32) -> () { vst1q_f32(to, self) }
        fn add(self, other: Self) -> Self { vaddq_f32(self, other) }
        fn abs(self) -> Self { vabsq_f32(self) }
        fn swap_pairs(self) -> Self { vrev64q_f32(self) }
        fn mask(from: usize, to: usize) -> Range { (from, to) }
        fn load_masked(from: *const f32, mask: Range) -> Self { load_some(from, mask) }
    }
}

impl Fused for float32x4_t {
    methods! {
        fn mul_add(self, b: Self, c: Self) -> Self { vfmaq_f32(c, self, b) }
    }
}

impl Nans for float32x4_t {
    methods! {
        fn nans(a: Self, b: Self) -> Self {
            // A NaN does not equal itself.
            let numbers = vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b));
            vreinterpretq_f32_u32(veorq_u32(numbers, vdupq_n_u32(u32::MAX)))
        }
        fn or(self, other: Self) -> Self {
            vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(self), vreinterpretq_u32_f32(other)))
        }
        fn any(self) -> bool { vmaxvq_u32(vreinterpretq_u32_f32(self)) != 0 }
    }
}
