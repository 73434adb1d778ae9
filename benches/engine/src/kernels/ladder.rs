//! Repeats on this processor the steps by which a sum was made faster on the HA8000 (Kuroda, "High-performance
//! programming II", 2008): more accumulators hide the latency of an addition. The last step is Largesse's kernel.

use super::case::{BlasKernel, Case};
use super::contestants::{Contestant, Peers, rung};
use super::data::{Data, Vectors};
use super::levels::Levels;
use super::rows::take_turns;
use largesse_kernels::{Alone, Kernels, Vector};
use largesse_machine::cycles::Counter;
use std::hint::black_box;

/// Number of elements, which fit in the first-level cache.
const LENGTH: usize = 1024;

#[derive(Debug)]
pub(super) struct Ladder {
    pub(super) steps: Vec<Rung>,
    /// Cycles of an addition and of a multiplication, each of which depends on the one before.
    pub(super) cycles: Option<(f64, f64)>,
    pub(super) gigahertz: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Rung {
    pub(super) name: &'static str,
    pub(super) gflops: f64,
    /// Per cent of the processor's rate of additions.
    pub(super) per_cent: Option<f64>,
    pub(super) spread: f64,
}

pub(super) fn climb(data: &Data, peers: &Peers, levels: &Levels, turns: u32, counter: &Counter) -> Ladder {
    let case = Case { kernel: BlasKernel::Dsum, n: LENGTH, shift: 0 };
    let vectors = data.fill(&case);
    let mut all: Vec<Contestant> = Vec::new();
    if let Ok(loops) = &peers.loops {
        let names = ["SSE2, 1 accumulator", "SSE2, 4 accumulators", "SSE2, 8 accumulators"];
        all.push(Contestant { name: "one number, 1 accumulator", ours: false, run: rung(loops.dsum) });
        let steps = loops.ladder.iter().zip(names);
        all.extend(steps.map(|((_, sum), name)| Contestant { name, ours: false, run: rung(*sum) }));
    }
    let best = Kernels::best();
    let ours = move |v: Vectors, times: usize| {
        let mut last = 0.0;
        for _ in 0..times {
            // SAFETY: `n` elements are within the range, which is ours.
            let x: Vector<'_, f64> = unsafe { Vector::from_raw(black_box(v.x), 1, v.n) };
            last = black_box(best.sum(x, &Alone));
        }
        [last, 0.0]
    };
    all.push(Contestant { name: best.isa().name(), ours: true, run: Box::new(ours) });
    let runs: Vec<_> = all.iter().map(|one| (one.name, &*one.run)).collect();
    let steps = take_turns(&runs, vectors, turns, counter).into_iter().map(|time| {
        let flops = LENGTH as f64 / time.best;
        Rung {
            name: time.name,
            gflops: flops * 1e-9,
            per_cent: levels.additions.map(|most| 100.0 * flops / most),
            spread: time.spread,
        }
    });
    let steps = steps.collect();
    let cycles = levels
        .latency
        .zip(levels.clock)
        .map(|((add, multiply), clock)| (add * clock * 1e-9, multiply * clock * 1e-9));
    Ladder { steps, cycles, gigahertz: levels.clock.map(|clock| clock * 1e-9) }
}
