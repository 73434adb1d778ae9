//! Measures one case: checks the answers, then times the contestants in turns.

use super::case::{BlasKernel, Case};
use super::contestants::{Call, Contestant, FACTOR};
use super::data::{Data, Vectors};
use super::levels::Levels;
use super::sampling::{seconds, times_in_a_sample};
use largesse_kernels::{Alone, Complex, Kernels, reference};
use largesse_machine::cycles::Counter;

/// Least length of a sample, in seconds.
const SAMPLE: f64 = 200e-6;
/// Number of elements from which fewer turns suffice, since a call takes long.
const LONG: usize = 4 << 20;
const LONG_TURNS: u32 = 5;

#[derive(Debug)]
pub(super) struct CaseRow {
    pub(super) case: Case,
    pub(super) level: &'static str,
    /// Least seconds that level and processor allow; `None` where they were not measured.
    pub(super) limit: Option<f64>,
    /// Offset of `y` in its page less that of `x`, in bytes; 0 with one vector.
    pub(super) offset: usize,
    pub(super) times: Vec<Time>,
    /// Contestants that were not timed, since their answers were wrong.
    pub(super) wrong: Vec<Wrong>,
}

/// A contestant whose answer is wrong. A peer is named and left out of the row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) name: &'static str,
    pub(super) ours: bool,
    /// The answer, and the right one.
    pub(super) how: String,
}

/// The time of a call in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) name: &'static str,
    pub(super) best: f64,
    /// Median of the turns divided by the best, less 1.
    pub(super) spread: f64,
}

impl CaseRow {
    pub(super) fn time(&self, name: &str) -> Option<Time> {
        self.times.iter().copied().find(|time| time.name == name)
    }

    /// Returns the operations a second, in units of 1e9.
    pub(super) fn gflops(&self, time: Time) -> f64 {
        self.case.kernel.flops() * self.case.n as f64 / time.best * 1e-9
    }

    /// Returns the bytes a second, in units of 1e9.
    pub(super) fn gigabytes(&self, time: Time) -> f64 {
        self.case.kernel.moved() * self.case.n as f64 / time.best * 1e-9
    }

    /// Returns the speed in per cent of the limit.
    pub(super) fn per_cent(&self, time: Time) -> Option<f64> {
        self.limit.map(|limit| 100.0 * limit / time.best)
    }
}

pub(super) fn measure(
    case: &Case,
    data: &Data,
    all: &[Contestant],
    levels: &Levels,
    turns: u32,
    counter: &Counter,
) -> CaseRow {
    let wrong = wrong(case, data, all);
    let right = |one: &&Contestant| !wrong.iter().any(|wrong| wrong.name == one.name);
    let runs: Vec<_> = all.iter().filter(right).map(|one| (one.name, &*one.run)).collect();
    let vectors = data.fill(case);
    let turns = if case.n >= LONG { turns.min(LONG_TURNS) } else { turns };
    let times = take_turns(&runs, vectors, turns, counter);
    let offset = if case.kernel.vectors() == 2 {
        vectors.y.addr().wrapping_sub(vectors.x.addr()) % (64 << 10)
    } else {
        0
    };
    CaseRow {
        case: *case,
        level: levels.name_of(case.footprint()),
        limit: levels.limit(case),
        offset,
        times,
        wrong,
    }
}

/// Samples all contestants equally often, one after the other.
pub(super) fn take_turns(
    all: &[(&'static str, &Call<'_>)],
    vectors: Vectors,
    turns: u32,
    counter: &Counter,
) -> Vec<Time> {
    let call = |run: &Call<'_>, times| _ = run(vectors, times);
    let times_of =
        |(_, run): &(_, &Call<'_>)| times_in_a_sample(counter, SAMPLE, &mut |times| call(run, times));
    let calls: Vec<usize> = all.iter().map(times_of).collect();
    let mut samples = vec![Vec::new(); all.len()];
    for _ in 0..turns {
        for (i, (_, run)) in all.iter().enumerate() {
            samples[i].push(seconds(counter, || call(run, calls[i])) / calls[i] as f64);
        }
    }
    let summary = |(i, (name, _)): (usize, &(&'static str, _))| {
        let samples = &mut samples[i];
        samples.sort_by(f64::total_cmp);
        let (best, middle) = (samples[0], samples[samples.len() / 2]);
        Time { name, best, spread: middle / best - 1.0 }
    };
    all.iter().enumerate().map(summary).collect()
}

/// Returns the contestants with wrong answers: Largesse's if the bits differ from the reference's, a peer if the
/// difference exceeds the error of rounding.
fn wrong(case: &Case, data: &Data, all: &[Contestant]) -> Vec<Wrong> {
    let mut vectors = data.fill(case);
    let (want, size) = want(case.kernel, vectors);
    let epsilon = if case.kernel.is_single() { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let near = (case.n as f64 * epsilon).min(1.0) * size;
    let mut wrong = Vec::new();
    for one in all {
        let mut got = (one.run)(vectors, 1);
        if case.kernel == BlasKernel::Daxpy {
            // SAFETY: `y` has `n` elements.
            let y = unsafe { std::slice::from_raw_parts(vectors.y.cast_const(), vectors.n) };
            got[0] = reference::sum(y);
            vectors = data.fill(case);
        }
        let right = |(got, want): (&f64, &f64)| {
            if one.ours { got.to_bits() == want.to_bits() } else { (got - want).abs() <= near }
        };
        if !got.iter().zip(&want).all(right) {
            let how = format!("{} gave {got:?}, not {want:?}", case.title());
            wrong.push(Wrong { name: one.name, ours: one.ours, how });
        }
    }
    wrong
}

/// Returns the reference's answer, and the sum of the addends' sizes.
fn want(kernel: BlasKernel, v: Vectors) -> ([f64; 2], f64) {
    // SAFETY: each vector has `n` elements of the kernel's type.
    let slices =
        unsafe { (std::slice::from_raw_parts(v.x, v.n), std::slice::from_raw_parts(v.y.cast_const(), v.n)) };
    let (x, y) = slices;
    let best = Kernels::best();
    match kernel {
        BlasKernel::Dsum => ([reference::sum(x), 0.0], best.asum(x, &Alone)),
        BlasKernel::Dasum => ([reference::asum(x), 0.0], best.asum(x, &Alone)),
        BlasKernel::Dsumsq => ([reference::sumsq(x), 0.0], best.sumsq(x, &Alone)),
        BlasKernel::Dnrm2 => ([reference::nrm2(x), 0.0], best.nrm2(x, &Alone)),
        BlasKernel::Ddot => ([reference::dot(x, y), 0.0], best.nrm2(x, &Alone) * best.nrm2(y, &Alone)),
        BlasKernel::Daxpy => {
            let mut new = y.to_vec();
            reference::axpy(FACTOR, x, &mut new);
            ([reference::sum(&new), 0.0], best.asum(&new, &Alone))
        }
        BlasKernel::Ssum | BlasKernel::Sdot => {
            // SAFETY: as above.
            let (x, y) = unsafe {
                (
                    std::slice::from_raw_parts(v.x.cast::<f32>(), v.n),
                    std::slice::from_raw_parts(v.y.cast_const().cast::<f32>(), v.n),
                )
            };
            let (answer, size) = if kernel == BlasKernel::Ssum {
                (reference::sum(x), best.asum(x, &Alone))
            } else {
                (reference::dot(x, y), best.nrm2(x, &Alone) * best.nrm2(y, &Alone))
            };
            ([f64::from(answer), 0.0], f64::from(size))
        }
        BlasKernel::Zdotu => {
            // SAFETY: as above.
            let (cx, cy) = unsafe {
                (
                    std::slice::from_raw_parts(v.x.cast::<Complex<f64>>(), v.n),
                    std::slice::from_raw_parts(v.y.cast_const().cast::<Complex<f64>>(), v.n),
                )
            };
            // SAFETY: as above; two numbers each.
            let (x, y) = unsafe {
                (
                    std::slice::from_raw_parts(v.x, 2 * v.n),
                    std::slice::from_raw_parts(v.y.cast_const(), 2 * v.n),
                )
            };
            let dot = reference::dotu(cx, cy);
            ([dot.re, dot.im], best.nrm2(x, &Alone) * best.nrm2(y, &Alone))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_contestants_are_named() {
        let case = Case { kernel: BlasKernel::Dsum, n: 1000, shift: 0 };
        let data = Data::new(0.0).unwrap();
        let vectors = data.fill(&case);
        // SAFETY: the vector has `n` elements.
        let exact = reference::sum(unsafe { std::slice::from_raw_parts(vectors.x, vectors.n) });
        let gives = |name, ours, sum: f64| Contestant { name, ours, run: Box::new(move |_, _| [sum, 0.0]) };
        let all = [
            gives("right", true, exact),
            gives("near", true, exact.next_up()),
            gives("peer", false, exact.next_up()),
            gives("bad peer", false, exact + 1e-6),
        ];
        let found = wrong(&case, &data, &all);
        let names: Vec<_> = found.iter().map(|wrong| (wrong.name, wrong.ours)).collect();
        assert_eq!(names, [("near", true), ("bad peer", false)]);
        assert!(found[1].how.starts_with("dsum of 1000 gave [7."), "{found:?}");
    }
}
