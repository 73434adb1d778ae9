//! Results have the same bits with any number of threads.

mod support;

use largesse_kernels::{Alone, Complex, Kernels, Team, reference};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::everywhere;

/// A team that starts new threads for each call, and counts the calls.
struct Scoped {
    size: usize,
    calls: AtomicUsize,
}

impl Scoped {
    fn of(size: usize) -> Scoped {
        Scoped { size, calls: AtomicUsize::new(0) }
    }
}

impl Team for Scoped {
    fn size(&self) -> usize {
        self.size
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|scope| {
            for member in 0..members {
                scope.spawn(move || work(member));
            }
        });
    }
}

fn vectors(n: usize) -> (Vec<f64>, Vec<f64>) {
    ((1..=n).map(|i| 1.0 / i as f64).collect(), (1..=n).map(|i| (i as f64).sqrt()).collect())
}

#[test]
fn team_size_keeps_bits() {
    let n = reference::PART * 33 + 1234;
    let (x, y) = vectors(n);
    let (cx, cy): (Vec<_>, Vec<_>) = x
        .chunks_exact(2)
        .zip(y.chunks_exact(2))
        .map(|(x, y)| (Complex { re: x[0], im: x[1] }, Complex { re: y[0], im: y[1] }))
        .unzip();
    let results = |kernels: Kernels, team: &dyn Team| {
        let (dotu, dotc) = (kernels.dotu(&cx, &cy, team), kernels.dotc(&cx, &cy, team));
        let mut new = y.clone();
        kernels.axpy(1.5, &x, &mut new, team);
        [
            kernels.sum(&x, team),
            kernels.asum(&y, team),
            kernels.sumsq(&x, team),
            kernels.nrm2(&y, team),
            kernels.amax(&x, team),
            kernels.amin(&x, team),
            kernels.dot(&x, &y, team),
            kernels.sum(&new, team),
            dotu.re,
            dotu.im,
            dotc.re,
            dotc.im,
        ]
        .map(f64::to_bits)
    };
    let want = results(Kernels::best(), &Alone);
    assert_eq!(want[0], reference::sum(&x).to_bits());
    for size in [1, 2, 3, 5, 16] {
        let team = Scoped::of(size);
        assert_eq!(results(Kernels::best(), &team), want, "{size} threads");
        let called = team.calls.into_inner();
        assert_eq!(called > 0, size > 1, "{size} threads, called {called} times");
    }
    for kernels in everywhere() {
        assert_eq!(results(kernels, &Scoped::of(2)), want, "{}", kernels.isa());
    }
}

/// Checks that a team is used from 8 MiB on, counted over all vectors of a call.
#[test]
fn short_vectors_use_no_team() {
    let called = |work: &dyn Fn(Kernels, &Scoped)| {
        let team = Scoped::of(2);
        work(Kernels::best(), &team);
        team.calls.into_inner() > 0
    };
    let mib = |n: usize| n << 20;
    let (x, y) = vectors(mib(1));
    let short = &x[1..];
    assert!(!called(&|kernels, team| _ = kernels.sum(short, team)));
    assert!(called(&|kernels, team| _ = kernels.sum(&x, team)));
    assert!(!called(&|kernels, team| _ = kernels.dot(&x[..mib(1) / 2 - 1], &y[..mib(1) / 2 - 1], team)));
    assert!(called(&|kernels, team| _ = kernels.dot(&x[..mib(1) / 2], &y[..mib(1) / 2], team)));
    let single = vec![1.0_f32; mib(2)];
    assert!(!called(&|kernels, team| _ = kernels.sum(&single[1..], team)));
    assert!(called(&|kernels, team| _ = kernels.sum(&single, team)));
}

#[test]
fn threads_beyond_parts_are_harmless() {
    let (x, _) = vectors(reference::PART * 32 + 1);
    let team = Scoped::of(40);
    assert_eq!(Kernels::best().sum(&x, &team).to_bits(), reference::sum(&x).to_bits());
}

#[test]
fn parts_depend_on_length_alone() {
    for (n, len) in [
        (0, 0),
        (1, 1),
        (reference::PART, reference::PART),
        (reference::PART + 1, 16448), // two halves of whole rows
        (64 << 20, (64 << 20) / 256),
    ] {
        assert_eq!(reference::part_len::<f64>(n), len, "{n}");
    }
}
