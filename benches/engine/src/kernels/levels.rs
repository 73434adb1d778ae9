//! Measures the limits of the processor and of each cache level, with loads and operations alone.

use super::case::{BlasKernel, Case};
use super::data::Data;
use super::sampling::{seconds, times_in_a_sample};
use largesse_kernels::Isa;
use largesse_kernels::limits::{Chain, Limits, STRIDE};
use largesse_machine::clock::CoreClock;
use largesse_machine::cycles::Counter;
use largesse_machine::{Topology, pin};
use std::hint::black_box;

/// Least length of a sample, in seconds.
const SAMPLE: f64 = 500e-6;

/// A cache level, or memory, and its limits.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) name: &'static str,
    /// Bytes that fit in the level.
    pub(super) size: usize,
    /// Bytes of the vectors that were read for the measurement.
    pub(super) measured: usize,
    /// Rate of loads, in bytes a second.
    pub(super) read: Option<f64>,
    /// Rate of two loads and a store, in bytes a second.
    pub(super) update: Option<f64>,
}

#[derive(Clone, Debug)]
pub(super) struct Levels {
    pub(super) levels: Vec<Level>,
    /// Cycles of the core a second.
    pub(super) clock: Option<f64>,
    /// Rate of operations on `f64`, a second.
    pub(super) additions: Option<f64>,
    pub(super) multiply_adds: Option<f64>,
    /// Nanoseconds of an addition and of a multiplication, each of which depends on the one before.
    pub(super) latency: Option<(f64, f64)>,
}

impl Levels {
    pub(super) fn measure(data: &Data, turns: u32, counter: &Counter) -> Levels {
        let meter = Meter { data, turns, counter };
        let limits: Vec<Limits> = Isa::ALL.into_iter().filter_map(Limits::of).collect();
        let room = data.room();
        let [l1, l2, l3] = cache_sizes();
        let places = [
            ("L1", l1, l1 / 2),
            // Vectors as large as the cache would be evicted in part.
            ("L2", l2 / 8 * 7, l2 / 2),
            ("L3", l3 / 8 * 7, (l3 / 4).clamp(2 * l2, 8 << 20)),
            ("memory", usize::MAX, room),
        ];
        let level = |(name, size, measured): (&'static str, usize, usize)| {
            let measured = measured.min(room);
            let best = |of: &dyn Fn(Limits) -> f64| limits.iter().map(|one| of(*one)).reduce(f64::max);
            let read = best(&|one| meter.bytes_read(one, measured));
            let update = best(&|one| meter.bytes_updated(one, measured));
            Level { name, size, measured, read, update }
        };
        let best_rate = |count: &dyn Fn(Limits) -> Option<usize>| {
            limits.iter().filter_map(|one| meter.rate(|| count(*one))).reduce(f64::max)
        };
        let per = |chain: Chain| meter.rate(|| chain.run(3_000)).map(|rate| 1e9 / rate);
        Levels {
            levels: places.into_iter().map(level).collect(),
            clock: CoreClock::measure(counter).map(|clock| clock.hertz),
            additions: best_rate(&|one| Some(one.additions(100_000))),
            multiply_adds: best_rate(&|one| one.multiply_adds(100_000)),
            latency: per(Chain::Additions).zip(per(Chain::Multiplications)),
        }
    }

    fn of(&self, footprint: usize) -> Option<&Level> {
        self.levels.iter().find(|level| footprint <= level.size)
    }

    pub(super) fn name_of(&self, footprint: usize) -> &'static str {
        self.of(footprint).map_or("memory", |level| level.name)
    }

    /// Returns the least seconds of a case: its bytes at the level's rate, or its operations at the processor's.
    pub(super) fn limit(&self, case: &Case) -> Option<f64> {
        let level = self.of(case.footprint())?;
        let (kernel, n) = (case.kernel, case.n as f64);
        let bytes = if kernel == BlasKernel::Daxpy { level.update } else { level.read }?;
        let flops = if kernel.is_fused() { self.multiply_adds } else { self.additions }?;
        let lanes = if kernel.is_single() { 2.0 } else { 1.0 };
        Some((kernel.moved() * n / bytes).max(kernel.flops() * n / (flops * lanes)))
    }
}

/// The data and the clock with which limits are measured.
struct Meter<'a> {
    data: &'a Data,
    turns: u32,
    counter: &'a Counter,
}

impl Meter<'_> {
    /// Returns the best rate of all turns, a second.
    fn rate(&self, count: impl Fn() -> Option<usize>) -> Option<f64> {
        let once = || {
            let mut counted = None;
            let seconds = seconds(self.counter, || counted = black_box(count()));
            Some(counted? as f64 / seconds)
        };
        (0..self.turns.max(1)).filter_map(|_| once()).reduce(f64::max)
    }

    fn bytes_read(&self, limits: Limits, bytes: usize) -> f64 {
        let n = bytes / 8 / STRIDE * STRIDE;
        let vectors = self.data.vectors(&Case { kernel: BlasKernel::Dsum, n, shift: 0 });
        // SAFETY: `n` elements are within the range, which is ours.
        let x = unsafe { std::slice::from_raw_parts(vectors.x, n) };
        self.bytes_a_second(n * 8, |passes| limits.read(x, passes))
    }

    fn bytes_updated(&self, limits: Limits, bytes: usize) -> f64 {
        let n = bytes / 16 / STRIDE * STRIDE;
        let vectors = self.data.vectors(&Case { kernel: BlasKernel::Daxpy, n, shift: 0 });
        // SAFETY: two vectors of `n` elements, which do not overlap, are within the range, which is ours.
        let (x, y) = unsafe {
            (std::slice::from_raw_parts(vectors.x, n), std::slice::from_raw_parts_mut(vectors.y, n))
        };
        self.bytes_a_second(n * 24, |passes| limits.update(x, y, passes))
    }

    fn bytes_a_second(&self, bytes: usize, mut pass: impl FnMut(usize)) -> f64 {
        let passes = times_in_a_sample(self.counter, SAMPLE, &mut pass);
        let turns = self.turns.clamp(1, if passes == 1 { 5 } else { u32::MAX });
        let one = |_| (bytes * passes) as f64 / seconds(self.counter, || pass(passes));
        (0..turns).map(one).fold(0.0, f64::max)
    }
}

/// Returns the sizes of the data caches of the first permitted processor, or usual sizes if the system has none.
fn cache_sizes() -> [usize; 3] {
    let topology = Topology::read("/".as_ref()).ok();
    let cpu = pin::current().ok().and_then(|cpus| cpus.first()).unwrap_or(0);
    let usual = [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)];
    usual.map(|(level, usual)| {
        let cache = topology.as_ref().and_then(|topology| topology.data_cache(cpu, level));
        cache.and_then(|cache| usize::try_from(cache.size).ok()).filter(|size| *size > 0).unwrap_or(usual)
    })
}
