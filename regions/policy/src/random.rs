//! Numbers for tests that look random, the same in each run (Knuth's linear congruential generator).

/// The next one.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state
}
