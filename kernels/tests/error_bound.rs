//! The rounding error of a sum never exceeds the bound given by the longest chain of additions.

mod support;

use largesse_kernels::{Alone, Element, reference};
use proptest::collection::vec;
use proptest::prelude::*;
use support::{everywhere, fewer};

/// Returns the exact sum of `x` as a list of numbers whose digits do not overlap, smallest first.
fn exact(x: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut parts: Vec<f64> = Vec::new();
    for mut one in x {
        let mut left = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            let (sum, error) = two_sum(one, part);
            if error != 0.0 {
                left.push(error);
            }
            one = sum;
        }
        left.push(one);
        parts = left;
    }
    parts
}

/// Returns `a + b` rounded, and its rounding error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let there = sum - a;
    (sum, (a - (sum - there)) + (b - there))
}

/// Returns `a * b` rounded, and its rounding error.
fn two_product(a: f64, b: f64) -> [f64; 2] {
    let product = a * b;
    [product, a.mul_add(b, -product)]
}

/// Returns the distance of `got` from the exact sum of `terms`.
fn distance(got: f64, terms: impl IntoIterator<Item = f64>) -> f64 {
    exact(terms.into_iter().chain([-got])).iter().sum::<f64>().abs()
}

/// Returns the largest number of roundings that an element of a vector of length `n` takes part in: in its lane, in
/// the tree of the lanes, and in the tree of the parts.
fn roundings(n: usize) -> f64 {
    let lanes = <f64 as Element>::LANES;
    let tree = f64::from(lanes.ilog2());
    let chain = reference::part_len::<f64>(n).div_ceil(lanes) as f64 + tree;
    let parts = n.div_ceil(reference::part_len::<f64>(n).max(1));
    if parts > 1 { chain + parts.div_ceil(lanes) as f64 + tree } else { chain }
}

/// Largest relative error of one rounding: half of the distance from 1 to the next number.
const UNIT: f64 = f64::EPSILON / 2.0;

fn within(x: &[f64], y: &[f64]) {
    let bound = |size: f64| {
        let lost = (roundings(x.len()) + 1.0) * UNIT;
        size * lost / (1.0 - lost) * (1.0 + 1e-10) + f64::MIN_POSITIVE
    };
    for kernels in everywhere() {
        let sum = distance(kernels.sum(x, &Alone), x.iter().copied());
        assert!(sum <= bound(x.iter().map(|x| x.abs()).sum()), "sum on {}: {sum:e}", kernels.isa());
        let products = || x.iter().zip(y).flat_map(|(x, y)| two_product(*x, *y));
        let dot = distance(kernels.dot(x, y, &Alone), products());
        let size = x.iter().zip(y).map(|(x, y)| (x * y).abs()).sum();
        assert!(dot <= bound(size), "dot on {}: {dot:e}", kernels.isa());
        let squares = x.iter().flat_map(|x| two_product(*x, *x));
        let sumsq = distance(kernels.sumsq(x, &Alone), squares);
        assert!(sumsq <= bound(x.iter().map(|x| x * x).sum()), "sumsq on {}: {sumsq:e}", kernels.isa());
    }
}

proptest! {
    #![proptest_config(fewer())]

    #[test]
    fn sums_stay_within_bound(pairs in vec((-1e3..1e3, -1e3..1e3), 0..3000)) {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        within(&x, &y);
    }

    #[test]
    fn cancelling_sums_stay_within_bound(half in vec((1e-3..1e3, -30..30_i32), 1..1000)) {
        let mut x: Vec<f64> = half.iter().map(|(part, power)| part * 2_f64.powi(*power)).collect();
        x.extend(x.clone().iter().rev().map(|x| -x));
        let y = vec![1.0 / 3.0; x.len()];
        within(&x, &y);
    }
}

#[test]
fn long_sums_stay_within_bound() {
    let x: Vec<f64> = (1..200_000).map(|i| 1.0 / f64::from(i)).collect();
    let y: Vec<f64> = (1..200_000).map(|i| f64::from(i).sin()).collect();
    within(&x, &y);
}

#[test]
fn bound_is_below_plain_loop() {
    assert!(roundings(1 << 26) < 4200.0, "{} roundings for {} elements", roundings(1 << 26), 1 << 26);
}

#[test]
fn exact_sum_is_exact() {
    assert_eq!(exact([1e100, 1.0, -1e100]).iter().sum::<f64>(), 1.0);
    assert_eq!(distance(0.1 + 0.2, [0.1, 0.2]), two_sum(0.1, 0.2).1.abs());
}
