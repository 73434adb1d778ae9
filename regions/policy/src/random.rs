//! Pseudo-random numbers for tests, the same in each run (Knuth's linear congruential generator).

/// Returns the next state of the generator.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state
}
