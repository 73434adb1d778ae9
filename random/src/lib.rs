//! Generates pseudo-random numbers for tests and measurements, the same in each run.
//!
//! # Knows / does not know
//! Knows one generator: Knuth's linear congruential generator modulo 2^64. Does not know what the numbers are for.
//! They must not serve as secrets.
//! # Invariants
//! 1. A seed always gives the same numbers, so that tests and measurements of two versions of a program use the same
//!    ones.
#![no_std]
#![forbid(unsafe_code)]

/// Advances the generator, and returns its new state. The lowest `n` bits repeat after 2^`n` numbers: the
/// highest bits are the most random.
#[inline]
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_mmix() {
        let mut state = 1;
        let numbers = [(); 3].map(|()| next(&mut state));
        assert_eq!(
            numbers,
            [7_806_831_264_735_756_412, 9_396_908_728_118_811_419, 11_960_119_808_228_829_710,]
        );
    }
}
