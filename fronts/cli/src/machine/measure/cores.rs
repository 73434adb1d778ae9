//! Measures the round trip of a cache line between two processors.

use super::{Figure, Limits, REPEATS, team};
use largesse_machine::Topology;
use largesse_machine::cycles::Counter;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};

const ROUNDS: u64 = 2000;
/// Largest number of processors that are all measured. On larger machines one processor of each core is measured, of at
/// most this number of cores.
const MOST: usize = 48;

/// The round trip between two processors.
#[derive(Debug, Serialize)]
pub(crate) struct CorePair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// Nanoseconds of a round trip, or `None` if it was not measured.
    pub(crate) round_trip: Option<Figure>,
}

/// Measures each pair of `cpus` until the time limit.
pub(crate) fn pairs(
    counter: &Counter,
    cpus: &[u32],
    limits: &Limits,
    step: &mut dyn FnMut(String),
) -> Vec<CorePair> {
    let mut all = Vec::new();
    for (place, &first) in cpus.iter().enumerate() {
        for &second in &cpus[place + 1..] {
            step(format!("processors {first} and {second}"));
            let round_trip = if limits.time_is_up() { None } else { round_trip(counter, first, second) };
            all.push(CorePair { first, second, round_trip });
        }
    }
    all
}

/// Returns the processors to measure: all, or one of each core, or at most [`MOST`] of these.
pub(crate) fn chosen(topology: &Topology, permitted: &[u32]) -> Vec<u32> {
    if permitted.len() <= MOST {
        return permitted.to_vec();
    }
    let first = |core: &largesse_machine::Bitmap| core.iter().find(|cpu| permitted.contains(cpu));
    let mut cores: Vec<u32> = topology.cores.iter().filter_map(first).collect();
    if cores.is_empty() {
        cores = permitted.to_vec(); // the kernel does not tell the threads of each core
    }
    let apart = cores.len().div_ceil(MOST);
    cores.into_iter().step_by(apart).collect()
}

/// Measures a round trip in nanoseconds, or returns `None` if a thread cannot be pinned.
pub(crate) fn round_trip(counter: &Counter, first: u32, second: u32) -> Option<Figure> {
    /// Occupies two cache lines, which hardware fetches in pairs.
    #[repr(align(128))]
    struct Alone(AtomicU64);
    let ball = Alone(AtomicU64::new(0));
    // The first thread has the even turns, which are counted across repetitions.
    let parts = vec![(first, (0_u64, 0_u64)), (second, (1, 0))];
    let seconds = team::run(counter, parts, REPEATS, |(side, played)| {
        for _ in 0..ROUNDS {
            let mine = *played * 2 + *side;
            let mut looks = 0_u32;
            while ball.0.load(Ordering::Acquire) != mine {
                looks += 1;
                // The other thread may not be running at all.
                if looks.is_multiple_of(1 << 14) {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
            ball.0.store(mine + 1, Ordering::Release);
            *played += 1;
        }
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand rounds")]
    let times: Vec<f64> = seconds.iter().map(|seconds| seconds * 1e9 / ROUNDS as f64).collect();
    // Light travels 30 cm in a nanosecond; no cache answers within one.
    Figure::lowest(&times, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use largesse_machine::pin;

    #[test]
    fn round_trip_is_measured() {
        let cpus: Vec<u32> = pin::permitted().iter().collect();
        let (first, last) = (cpus[0], *cpus.last().unwrap());
        if first == last {
            return;
        }
        let figure = round_trip(&Counter::calibrate(), first, last).unwrap();
        assert!(!figure.impossible && figure.best < 1e7, "{figure:?}");
        assert_eq!(round_trip(&Counter::clock(None), first, 8000), None);
    }
}
