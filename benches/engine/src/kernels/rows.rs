//! One case, measured: answers first, then turns.

use super::case::{Case, Kernel};
use super::contestants::{Call, Contestant, FACTOR};
use super::data::{Data, Vectors};
use super::levels::Levels;
use super::sampling::{seconds, times_in_a_sample};
use largesse_kernels::{Alone, Complex, Kernels, reference};
use largesse_machine::cycles::Counter;

/// Seconds that a sample lasts at least.
const SAMPLE: f64 = 200e-6;
/// Elements from which fewer turns are enough: a call lasts long.
const LONG: usize = 4 << 20;
const LONG_TURNS: u32 = 5;

#[derive(Debug)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) level: &'static str,
    /// Seconds that the level and the processor allow; unknown where they were not measured.
    pub(super) limit: Option<f64>,
    /// `y`'s place in its page less `x`'s; 0 with one vector.
    pub(super) offset: usize,
    pub(super) times: Vec<Time>,
    /// Who was not timed.
    pub(super) wrong: Vec<Wrong>,
}

/// A contestant whose answer is not right. A peer's is its own affair: it is named, and left out of the row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) name: &'static str,
    pub(super) ours: bool,
    /// What it gave, and what is right.
    pub(super) how: String,
}

/// Seconds of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Time {
    pub(super) name: &'static str,
    pub(super) best: f64,
    /// The middle one over the best, less 1.
    pub(super) spread: f64,
}

impl Row {
    pub(super) fn time(&self, name: &str) -> Option<Time> {
        self.times.iter().copied().find(|time| time.name == name)
    }

    /// 1e9 operations a second.
    pub(super) fn gflops(&self, time: Time) -> f64 {
        self.case.kernel.flops() * self.case.n as f64 / time.best * 1e-9
    }

    /// 1e9 bytes a second.
    pub(super) fn gigabytes(&self, time: Time) -> f64 {
        self.case.kernel.moved() * self.case.n as f64 / time.best * 1e-9
    }

    /// Of the limit.
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
) -> Row {
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
    Row {
        case: *case,
        level: levels.name_of(case.footprint()),
        limit: levels.limit(case),
        offset,
        times,
        wrong,
    }
}

/// Each as often as the others, one after the other.
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

/// Those whose answers are wrong: ours, when they are not the reference's bits; a peer's, when they are further from them
/// than rounding explains.
fn wrong(case: &Case, data: &Data, all: &[Contestant]) -> Vec<Wrong> {
    let mut vectors = data.fill(case);
    let (want, size) = want(case.kernel, vectors);
    let epsilon = if case.kernel.is_single() { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let near = (case.n as f64 * epsilon).min(1.0) * size;
    let mut wrong = Vec::new();
    for one in all {
        let mut got = (one.run)(vectors, 1);
        if case.kernel == Kernel::Daxpy {
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

/// The reference's answer, and the size of what was added.
fn want(kernel: Kernel, v: Vectors) -> ([f64; 2], f64) {
    // SAFETY: each vector has `n` elements of the kernel's type.
    let slices =
        unsafe { (std::slice::from_raw_parts(v.x, v.n), std::slice::from_raw_parts(v.y.cast_const(), v.n)) };
    let (x, y) = slices;
    let best = Kernels::best();
    match kernel {
        Kernel::Dsum => ([reference::sum(x), 0.0], best.asum(x, &Alone)),
        Kernel::Dasum => ([reference::asum(x), 0.0], best.asum(x, &Alone)),
        Kernel::Dsumsq => ([reference::sumsq(x), 0.0], best.sumsq(x, &Alone)),
        Kernel::Dnrm2 => ([reference::nrm2(x), 0.0], best.nrm2(x, &Alone)),
        Kernel::Ddot => ([reference::dot(x, y), 0.0], best.nrm2(x, &Alone) * best.nrm2(y, &Alone)),
        Kernel::Daxpy => {
            let mut new = y.to_vec();
            reference::axpy(FACTOR, x, &mut new);
            ([reference::sum(&new), 0.0], best.asum(&new, &Alone))
        }
        Kernel::Ssum | Kernel::Sdot => {
            // SAFETY: as above.
            let (x, y) = unsafe {
                (
                    std::slice::from_raw_parts(v.x.cast::<f32>(), v.n),
                    std::slice::from_raw_parts(v.y.cast_const().cast::<f32>(), v.n),
                )
            };
            let (answer, size) = if kernel == Kernel::Ssum {
                (reference::sum(x), best.asum(x, &Alone))
            } else {
                (reference::dot(x, y), best.nrm2(x, &Alone) * best.nrm2(y, &Alone))
            };
            ([f64::from(answer), 0.0], f64::from(size))
        }
        Kernel::Zdotu => {
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
    fn who_is_wrong_is_named_and_only_our_bits_must_agree() {
        let case = Case { kernel: Kernel::Dsum, n: 1000, shift: 0 };
        let data = Data::new(0.0).unwrap();
        let vectors = data.fill(&case);
        // SAFETY: `n` elements.
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
