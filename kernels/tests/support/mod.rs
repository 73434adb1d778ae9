//! Generates test vectors, aligns them, and finds the instruction sets of this processor.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::cast_possible_truncation, reason = "an `f32` is a rounded `f64`")]

use largesse_kernels::{Element, Isa, Kernels};
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns the kernels of every available instruction set.
pub(crate) fn everywhere() -> impl Iterator<Item = Kernels> {
    Isa::ALL.into_iter().filter_map(Kernels::of)
}

/// A number that can be converted from and to bits.
pub(crate) trait Number: Element + Default {
    fn bits(self) -> u64;
    fn of(value: f64) -> Self;
    /// Returns the number with these bits. For `f32` these are the low 32.
    fn from_bits(bits: u64) -> Self;
}

impl Number for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn of(value: f64) -> f64 {
        value
    }
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl Number for f32 {
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

/// Returns vector lengths around every border in the code: those of registers, of rows, and the length from which
/// loads are aligned.
pub(crate) fn lengths(lanes: usize) -> impl Iterator<Item = usize> {
    let around = [1, 2, 3, 7, 8, 9, 12, 20].into_iter();
    around.map(move |rows| rows * lanes).flat_map(|n| [n - 1, n, n + 1, n + 5]).chain(0..20).chain([37, 45])
}

/// Generates two vectors of one length. Their elements are ordinary numbers, numbers of very different sizes, or
/// special values: zeros of both signs, subnormal numbers, infinities, NaNs with payloads.
pub(crate) fn numbers<T: Number>() -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    let len = prop_oneof![0..40_usize, 0..400_usize, 1000..2100_usize];
    (len, 0..4_u8).prop_flat_map(|(len, kind)| (vec(number::<T>(kind), len), vec(number::<T>(kind), len)))
}

fn number<T: Number>(kind: u8) -> BoxedStrategy<T> {
    match kind {
        0 => (-1.0..1.0).prop_map(T::of).boxed(),
        1 => (any::<bool>(), -140..127_i32, 1.0..2.0)
            .prop_map(|(minus, power, part): (bool, i32, f64)| T::of(if minus { -part } else { part } * 2_f64.powi(power)))
            .boxed(),
        // Zeros of both signs, the smallest and the largest numbers: products that underflow to a signed zero.
        2 => prop_oneof![
            Just(0.0), Just(-0.0), Just(1e-30), Just(-1e-30), Just(1e-38), Just(-1e-45), Just(1e30), Just(5e-324),
            Just(1e-200), Just(-1e-200), Just(1e200), Just(-1e300)
        ]
        .prop_map(T::of)
        .boxed(),
        // NaNs and infinities among ordinary numbers.
        _ => prop_oneof![
            40 => (-1.0..1.0).prop_map(T::of),
            1 => Just(T::of(f64::INFINITY)),
            1 => Just(T::of(f64::NEG_INFINITY)),
            1 => any::<u64>().prop_map(T::from_bits),
            1 => any::<u32>().prop_map(|low| T::from_bits(T::of(f64::NAN).bits() | u64::from(low) & 0xf_ffff)),
        ]
        .boxed(),
    }
}

/// A copy of elements that starts at a given number of elements after the start of a cache line. The memory before and
/// after it holds numbers that would change a result.
pub(crate) struct Placed<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

pub(crate) fn placed<T: Number>(elements: &[T], place: usize) -> Placed<T> {
    let line = 64 / size_of::<T>();
    let mut memory = vec![T::of(1e9); elements.len() + 3 * line];
    let start = memory.as_ptr().align_offset(64) + place;
    memory[start..start + elements.len()].copy_from_slice(elements);
    Placed { memory, start, len: elements.len() }
}

impl<T> Placed<T> {
    pub(crate) fn get(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Returns a configuration with 60 random cases for each property, or with as many as `PROPTEST_CASES` says if these
/// are fewer.
pub(crate) fn fewer() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.min(60), failure_persistence: None, ..usual }
}
