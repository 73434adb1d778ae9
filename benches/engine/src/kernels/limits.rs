//! Measures how fast the processor and each cache level can be at most, by loads alone and by operations alone.

use super::calls::Timer;
use super::case::{Case, Data};
use super::kernel::ALL;
use largesse_kernels::Isa;
use largesse_kernels::limits::{Chain, Limits, STRIDE};
use largesse_machine::clock::CoreClock;
use largesse_machine::{Topology, pin};
use serde::Serialize;
use std::hint::black_box;

/// Number of rounds of operations in a timed call.
const ROUNDS: usize = 100_000;

/// A cache level, or memory, with its limits.
#[derive(Debug, Serialize)]
pub(super) struct Level {
    #[serde(rename = "level")]
    pub(super) name: &'static str,
    /// Number of bytes that fit into the level.
    #[serde(skip)]
    pub(super) size: usize,
    /// Number of bytes of the vectors that were read to measure the level.
    pub(super) bytes: usize,
    /// Rate at which the level is read, in bytes per second. (`update` is that of two loads and a store.)
    pub(super) read: Option<f64>,
    pub(super) update: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Levels {
    pub(super) levels: Vec<Level>,
    /// Clock rate of the core, in cycles per second.
    pub(super) clock: Option<f64>,
    /// Rate of additions of `f64`, per second. (`multiply_adds` is that of the operations in fused multiply-adds.)
    pub(super) additions: Option<f64>,
    pub(super) multiply_adds: Option<f64>,
    /// Seconds of an addition and of a multiplication that must wait for the result of the one before.
    pub(super) latency: Option<(f64, f64)>,
}

impl Levels {
    pub(super) fn measure(data: &Data, timer: &Timer) -> Levels {
        let limits: Vec<Limits> = Isa::ALL.into_iter().filter_map(Limits::of).collect();
        let [l1, l2, l3] = cache_sizes();
        let places = [
            ("L1", l1, l1 / 2),
            // Vectors as large as the cache would be evicted in part.
            ("L2", l2 / 8 * 7, l2 / 2),
            ("L3", l3 / 8 * 7, (l3 / 4).clamp(2 * l2, 8 << 20)),
            ("memory", usize::MAX, data.room),
        ];
        let level = |(name, size, measured): (&'static str, usize, usize)| {
            let bytes = measured.min(data.room);
            let [read, update] = [false, true].map(|updates| {
                let rates = limits.iter().map(|one| bytes_a_second(*one, updates, bytes, data, timer));
                rates.reduce(f64::max)
            });
            Level { name, size, bytes, read, update }
        };
        // The best rate of work that returns the number of its operations; none if it is not possible.
        let rate = |work: &dyn Fn() -> Option<usize>| {
            let operations = work()? as f64;
            Some(operations / best(timer, |times| (0..times).for_each(|_| _ = black_box(work()))))
        };
        let latency = |chain: Chain| Some(1.0 / rate(&|| chain.run(3_000))?);
        Levels {
            levels: places.into_iter().map(level).collect(),
            clock: CoreClock::measure(&timer.counter).map(|clock| clock.hertz),
            additions: limits.iter().filter_map(|it| rate(&|| Some(it.additions(ROUNDS)))).reduce(f64::max),
            multiply_adds: limits.iter().filter_map(|it| rate(&|| it.multiply_adds(ROUNDS))).reduce(f64::max),
            latency: latency(Chain::Additions).zip(latency(Chain::Multiplications)),
        }
    }

    /// Returns the first level into which all vectors of a case fit.
    pub(super) fn of(&self, case: &Case) -> Option<&Level> {
        self.levels.iter().find(|level| case.footprint() <= level.size)
    }

    /// Returns the least possible seconds of a case: either its bytes at the level's rate, or its operations at the
    /// processor's, whichever takes longer.
    pub(super) fn limit(&self, case: &Case) -> Option<f64> {
        let (level, kernel, n) = (self.of(case)?, case.kernel, case.n as f64);
        let bytes = if kernel.updates() { level.update } else { level.read }?;
        // With more than one operation for each element, an addition is fused with a multiplication.
        let flops = if kernel.flops > 1.0 { self.multiply_adds } else { self.additions }?;
        let lanes = if kernel.is_single() { 2.0 } else { 1.0 };
        Some((kernel.moved() * n / bytes).max(kernel.flops * n / (flops * lanes)))
    }
}

/// Returns the seconds of `work` in its fastest turn. Its argument is how often to do it.
fn best(timer: &Timer, work: impl Fn(usize)) -> f64 {
    timer.time(0, [("", Box::new(work) as Box<dyn Fn(usize)>)])[0].best
}

/// Returns the best rate, in bytes per second, at which vectors of `bytes` bytes in all are read (as by a sum) or
/// updated (as by `daxpy`).
fn bytes_a_second(limits: Limits, updates: bool, bytes: usize, data: &Data, timer: &Timer) -> f64 {
    let kernel = ALL.into_iter().find(|kernel| kernel.updates() == updates).unwrap_or(ALL[0]);
    let n = bytes / (8 * kernel.vectors) / STRIDE * STRIDE;
    let v = data.vectors(&Case { kernel, n, shift: 0 });
    let seconds = best(timer, |passes| {
        if updates {
            // SAFETY: `y` has `n` elements, and no other code uses them.
            limits.update(v.x(), unsafe { std::slice::from_raw_parts_mut(v.y, v.n) }, passes);
        } else {
            limits.read(v.x(), passes);
        }
    });
    kernel.moved() * n as f64 / seconds
}

/// Returns the sizes in bytes of the three data caches of the first permitted processor, or usual sizes if they are
/// not known.
fn cache_sizes() -> [usize; 3] {
    let topology = Topology::read("/".as_ref()).ok();
    let cpu = pin::current().ok().and_then(|cpus| cpus.first()).unwrap_or(0);
    [(1, 32 << 10), (2, 1 << 20), (3, 32 << 20)].map(|(level, usual)| {
        let cache = topology.as_ref().and_then(|topology| topology.data_cache(cpu, level));
        cache.and_then(|cache| usize::try_from(cache.size).ok()).filter(|size| *size > 0).unwrap_or(usual)
    })
}
