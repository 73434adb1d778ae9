//! Every kernel raises the floating-point exceptions of the reference's operations, on each instruction set, at any
//! alignment, with any number of threads. A norm raises those of its result.
#![cfg(target_arch = "x86_64")]

mod support;

use largesse_kernels::{Alone, Complex, Element, Kernels, Team, Vector, VectorMut, reference};
use std::arch::asm;
use std::hint::black_box;
use support::{Number, everywhere, placed};

/// The flag of invalid operations in MXCSR, where the other exceptions' flags are, too.
const INVALID: u32 = 1;
const OVERFLOW: u32 = 1 << 3;
const UNDERFLOW: u32 = 1 << 4;
const INEXACT: u32 = 1 << 5;
const ALL: u32 = INVALID | 1 << 2 | OVERFLOW | UNDERFLOW | INEXACT;

/// Returns the exceptions that `work` raises.
fn raised<T>(work: impl FnOnce() -> T) -> u32 {
    let (before, mut after) = (0x1f80_u32, 0_u32);
    // SAFETY: clears the flags of this thread, in the usual mode.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const before) };
    black_box(work());
    // SAFETY: stores a control register.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut after) };
    after & ALL
}

/// A team with a thread for each member.
struct Threads(usize);

impl Team for Threads {
    fn size(&self) -> usize {
        self.0
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| (0..members).for_each(|member| _ = scope.spawn(move || work(member))));
    }
}

/// Adds two numbers in an addition that the compiler cannot combine with others, so that only its own exceptions are
/// raised.
#[inline(never)]
fn add<T: Element>(x: T, y: T) -> T {
    black_box(black_box(x) + black_box(y))
}

#[inline(never)]
fn mul_add<T: Element>(x: T, y: T, z: T) -> T {
    black_box(black_box(x).mul_add(black_box(y), black_box(z)))
}

/// Adds terms in the reference's order: parts, lanes, halves.
fn ordered<T: Element>(n: usize, lanes: usize, term: impl Fn(T, usize) -> T) -> T {
    let part = reference::part_len::<T>(n).max(1);
    let in_lanes = |count: usize, len: usize, term: &dyn Fn(T, usize) -> T| {
        let mut sums = vec![T::ZERO; count];
        (0..len).for_each(|i| sums[i % count] = term(sums[i % count], i));
        while sums.len() > 1 {
            let high = sums.split_off(sums.len() / 2);
            sums.iter_mut().zip(high).for_each(|(low, high)| *low = add(*low, high));
        }
        sums[0]
    };
    let each: Vec<T> = (0..n)
        .step_by(part)
        .map(|start| in_lanes(lanes, part.min(n - start), &|sum, i| term(sum, start + i)))
        .collect();
    if let [only] = each[..] { only } else { in_lanes(T::LANES, each.len(), &|sum, i| add(sum, each[i])) }
}

/// Returns numbers of which some sums raise an exception, depending on which are added to which.
fn hostile<T: Number>(n: usize, seed: u64, kind: u64) -> Vec<T> {
    let (large, tiny, square_root) = if size_of::<T>() == 8 {
        (T::of(1.5e308), T::from_bits(0x0010_0000_0000_0003), T::of(1.1e154))
    } else {
        (T::of(3e38), T::from_bits(0x0080_0003), T::of(1.6e19))
    };
    let mut state = seed;
    let mut next = || largesse_random::next(&mut state) >> 33;
    let one = || {
        let sparse = next() % 8;
        let sign = if next() % 2 == 0 { T::of(1.0) } else { T::of(-1.0) };
        let value = match (kind, sparse) {
            // Few values that are not zero, so that most additions are exact.
            (0, 0) => large,
            (1, 0) => square_root,
            (2, 0) => tiny,
            (3, 0..3) => T::INFINITY,
            (4, 0) => T::of(3.0),
            (4, 1) => T::of(0.1),
            (5, 0..4) => [large, tiny, square_root, T::INFINITY][usize::try_from(sparse).unwrap()],
            _ => T::ZERO,
        };
        sign * value
    };
    std::iter::repeat_with(one).take(n).collect()
}

/// Lengths of vectors that lie within a register, a row of lanes, several rows, and several parts.
const LENGTHS: [usize; 12] = [1, 2, 3, 5, 8, 16, 31, 65, 130, 517, 4099, 70_001];

/// The name of a kernel, the exceptions that it raised, and those that the reference raised.
type Case = (&'static str, u32, u32);

/// Checks that each kernel raises the same exceptions as the reference with the same order of operations.
fn agrees<T: Number>(kernels: Kernels, x: &[T], y: &[T], place: usize) {
    let (apart_x, apart_y) = (placed(x, place), placed(y, 3 - place));
    let (px, py) = (apart_x.get(), apart_y.get());
    let cases = [sums(kernels, px, py), complex_products(kernels, x, y), updates(kernels, px, py)];
    for (kernel, got, want) in cases.concat() {
        let (n, bits) = (x.len(), size_of::<T>() * 8);
        assert_eq!(
            got,
            want,
            "{kernel} on {} raises {got:#x} for {want:#x}; {n} numbers of {bits} bits",
            kernels.isa()
        );
    }
}

/// Returns the cases of kernels that reduce one or two vectors to a number.
fn sums<T: Number>(kernels: Kernels, x: &[T], y: &[T]) -> Vec<Case> {
    let n = x.len();
    let want = |term: &dyn Fn(T, usize) -> T| raised(|| ordered(n, T::LANES, term));
    let reversed = Vector::strided(x, -1, n).unwrap();
    vec![
        ("sum", raised(|| kernels.sum(x, &Alone)), want(&|sum, i| add(sum, x[i]))),
        ("asum", raised(|| kernels.asum(x, &Alone)), want(&|sum, i| add(sum, x[i].abs()))),
        ("sumsq", raised(|| kernels.sumsq(x, &Alone)), want(&|sum, i| mul_add(x[i], x[i], sum))),
        ("amax", raised(|| kernels.amax(x, &Alone)), 0),
        ("amin of a strided vector", raised(|| kernels.amin(reversed, &Alone)), 0),
        ("dot", raised(|| kernels.dot(x, y, &Alone)), want(&|sum, i| mul_add(x[i], y[i], sum))),
        (
            "sum of a strided vector",
            raised(|| kernels.sum(reversed, &Alone)),
            want(&|sum, i| add(sum, x[n - 1 - i])),
        ),
        (
            "dot of a strided vector",
            raised(|| kernels.dot(reversed, y, &Alone)),
            want(&|sum, i| mul_add(x[n - 1 - i], y[i], sum)),
        ),
    ]
}

/// Returns the cases of products of complex vectors, whose numbers are pairs of elements of `x` and of `y`.
fn complex_products<T: Number>(kernels: Kernels, x: &[T], y: &[T]) -> Vec<Case> {
    let complex = |x: &[T]| -> Vec<Complex<T>> {
        x.chunks_exact(2).map(|pair| Complex { re: pair[0], im: pair[1] }).collect()
    };
    let (x, y) = (complex(x), complex(y));
    let product = |a: fn(&Complex<T>) -> T, b: fn(&Complex<T>) -> T| {
        ordered(x.len(), T::LANES / 4, |sum, i| mul_add(a(&x[i]), b(&y[i]), sum))
    };
    let (re, im) = (|z: &Complex<T>| z.re, |z: &Complex<T>| z.im);
    let dot = |conjugate: bool| {
        let [a, b, c, d] = [product(re, re), product(im, im), product(re, im), product(im, re)];
        if conjugate { (add(a, b), add(c, -d)) } else { (add(a, -b), add(c, d)) }
    };
    vec![
        ("dotu", raised(|| kernels.dotu(&x, &y, &Alone)), raised(|| dot(false))),
        ("dotc", raised(|| kernels.dotc(&x, &y, &Alone)), raised(|| dot(true))),
    ]
}

/// Returns the cases of kernels that change the second vector.
fn updates<T: Number>(kernels: Kernels, x: &[T], y: &[T]) -> Vec<Case> {
    let (n, factor) = (x.len(), T::of(1.5));
    let want = raised(|| (0..n).for_each(|i| _ = mul_add(factor, x[i], y[i])));
    let [mut new, mut backwards] = [y.to_vec(), y.to_vec()];
    let reversed = Vector::strided(x, -1, n).unwrap();
    let target = VectorMut::strided(&mut backwards, -1, n).unwrap();
    vec![
        ("axpy", raised(|| kernels.axpy(factor, x, &mut new, &Alone)), want),
        ("axpy of a strided vector", raised(|| kernels.axpy(factor, reversed, target, &Alone)), want),
    ]
}

#[test]
fn kernels_raise_reference_exceptions() {
    for kernels in everywhere() {
        for n in LENGTHS {
            // Long vectors are slow to check, and get the mixture of all kinds only.
            let (seeds, kinds) = if n > 1000 { (1, 5..6) } else { (8, 0..6) };
            for seed in 0..seeds {
                for kind in kinds.clone() {
                    let place = usize::try_from(seed % 4).unwrap();
                    agrees::<f64>(kernels, &hostile(n, seed, kind), &hostile(n, seed + 99, kind), place);
                    agrees::<f32>(kernels, &hostile(n, seed, kind), &hostile(n, seed + 99, kind), place);
                }
            }
        }
    }
}

/// Checks that the norm of `values` followed by zeros is `want`, and raises `exceptions` only, which are those of the
/// exact result.
#[track_caller]
fn norm<T: Number>(values: &[f64], want: f64, exceptions: u32) {
    for kernels in everywhere() {
        for n in [values.len(), 40, 517, 70_001] {
            let mut x: Vec<T> = values.iter().map(|value| T::of(*value)).collect();
            x.resize(n.max(values.len()), T::ZERO);
            let mut got = T::ZERO;
            let flags = raised(|| got = kernels.nrm2(&x, &Alone));
            let at = format!("nrm2 of {values:?} and zeros, {n} in all, on {}", kernels.isa());
            assert_eq!(got.bits(), T::of(want).bits(), "{at}: {got:?}");
            assert_eq!(flags, exceptions, "{at}: exceptions {flags:#x}");
        }
    }
}

#[test]
fn norms_raise_result_exceptions() {
    let two = |power: i32| 2_f64.powi(power);
    // Exact results whose squares overflow or underflow.
    norm::<f64>(&[3.0 * two(1000), 4.0 * two(1000)], 5.0 * two(1000), 0);
    norm::<f64>(&[3.0 * two(-600), -4.0 * two(-600)], 5.0 * two(-600), 0);
    norm::<f64>(&[5e-324], 5e-324, 0);
    norm::<f32>(&[3.0 * two(100), 4.0 * two(100)], 5.0 * two(100), 0);
    norm::<f32>(&[3.0 * two(-120), 4.0 * two(-120)], 5.0 * two(-120), 0);
    norm::<f64>(&[3.0, 4.0], 5.0, 0);
    norm::<f64>(&[], 0.0, 0);
    // Tiny numbers with large ones: the result is rounded, and nothing else.
    norm::<f64>(&[1.0, 1e-200], 1.0, INEXACT);
    norm::<f64>(&[two(1000), 1e-300], two(1000), INEXACT);
    norm::<f64>(&[3e300, 4e300], 5e300, INEXACT);
    norm::<f32>(&[two(120), two(-130)], two(120), INEXACT);
    // Results beyond the largest and below the smallest normal number.
    norm::<f64>(&[1.7e308, 1.7e308], f64::INFINITY, OVERFLOW | INEXACT);
    norm::<f64>(&[5e-324, 5e-324], 5e-324, UNDERFLOW | INEXACT);
    norm::<f64>(&[f64::INFINITY, 1e300], f64::INFINITY, 0);
    norm::<f64>(&[f64::NAN, 1e300, 1e300], f64::NAN, 0);
}

#[test]
fn threads_return_exceptions_to_caller() {
    let n = 2_200_000;
    for kernels in everywhere() {
        let value = 1.5 * 2_f64.powi(1023);
        for at in [0, n / 2, n - 1] {
            let mut x = vec![0.0; n];
            x[at] = value;
            let y = vec![2.0; n];
            let flags = |team: &dyn Team| {
                let mut new = y.clone();
                [
                    raised(|| kernels.sum(&x, team)),
                    raised(|| kernels.dot(&x, &y, team)),
                    raised(|| kernels.sumsq(&x, team)),
                    raised(|| kernels.nrm2(&x, team)),
                    raised(|| kernels.axpy(1.5, &x, &mut new, team)),
                ]
            };
            let overflow = OVERFLOW | INEXACT;
            let want = [0, overflow, overflow, 0, overflow];
            for team in [&Alone as &dyn Team, &Threads(2), &Threads(7)] {
                let got = flags(team);
                assert_eq!(got, want, "{value} at {at}, {} threads, {}", team.size(), kernels.isa());
            }
        }
    }
}
