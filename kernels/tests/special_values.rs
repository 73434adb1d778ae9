//! Tests zeros, infinities, NaNs, and results near the limits of the format.

mod support;

use largesse_kernels::{Alone, Complex, reference};
use support::everywhere;

/// R's `NA`, a NaN whose low word is 1954.
const NA: f64 = f64::from_bits(0x7ff0_0000_0000_07a2);
const QUIET_NA: u64 = 0x7ff8_0000_0000_07a2;

#[test]
fn zero_sums_are_positive() {
    for kernels in everywhere() {
        for x in [&[][..], &[-0.0_f64], &[-0.0; 200]] {
            assert_eq!(kernels.sum(x, &Alone).to_bits(), 0, "{:?} on {}", x, kernels.isa());
            assert_eq!(kernels.nrm2(x, &Alone).to_bits(), 0);
            assert_eq!(kernels.asum(x, &Alone).to_bits(), 0);
            assert_eq!(kernels.dot(x, x, &Alone).to_bits(), 0);
        }
        // Products that underflow to a negative zero, in one lane or in all.
        for n in [1, 16, 33, 64, 700] {
            let (x, y) = (vec![1e-200_f64; n], vec![-1e-200; n]);
            assert_eq!(kernels.dot(&x, &y, &Alone).to_bits(), 0, "n = {n} on {}", kernels.isa());
            let (x, y) = (
                vec![Complex { re: 1e-200_f64, im: 1e-200 }; n],
                vec![Complex { re: -1e-200, im: -1e-200 }; n],
            );
            let (got, want) = (kernels.dotu(&x, &y, &Alone), reference::dotu(&x, &y));
            assert_eq!((want.re.to_bits(), want.im.to_bits()), (0, 0));
            assert_eq!((got.re.to_bits(), got.im.to_bits()), (0, 0), "dotu, n = {n} on {}", kernels.isa());
        }
    }
}

#[test]
fn first_nan_is_the_result() {
    for kernels in everywhere() {
        for n in [1, 7, 64, 100, 1000] {
            for first in [0, n / 2, n - 1] {
                let mut x = vec![1.0; n];
                x[first] = NA;
                x[first + 1..].fill(-f64::NAN);
                let y = vec![1.0; n];
                for result in [
                    kernels.sum(&x, &Alone),
                    kernels.asum(&x, &Alone),
                    kernels.sumsq(&x, &Alone),
                    kernels.nrm2(&x, &Alone),
                    kernels.amax(&x, &Alone),
                    kernels.amin(&x, &Alone),
                    kernels.dot(&x, &y, &Alone),
                    kernels.dot(&y, &x, &Alone),
                ] {
                    assert_eq!(result.to_bits(), QUIET_NA, "n = {n}, first {first}, {}", kernels.isa());
                }
            }
        }
    }
}

#[test]
fn invalid_operations_give_the_plain_nan() {
    let plain = f64::NAN.to_bits();
    assert_eq!(f64::NAN.abs().to_bits(), <f64 as largesse_kernels::Element>::NAN.to_bits());
    for kernels in everywhere() {
        let infinite = [f64::INFINITY, 1.0, f64::NEG_INFINITY];
        assert_eq!(kernels.sum(&infinite[..], &Alone).to_bits(), plain);
        assert_eq!(kernels.dot(&infinite[..1], &[0.0][..], &Alone).to_bits(), plain);
        let mut y = [f64::NEG_INFINITY; 40];
        kernels.axpy(2.0, &[f64::INFINITY; 40][..], &mut y[..], &Alone);
        assert!(y.iter().all(|y| y.to_bits() == plain), "{}", kernels.isa());
    }
}

#[test]
fn extremes_of_zeros_infinities_and_nothing() {
    for kernels in everywhere() {
        let extremes = |x: &[f64]| [kernels.amin(x, &Alone).to_bits(), kernels.amax(x, &Alone).to_bits()];
        assert_eq!(extremes(&[]), [f64::INFINITY.to_bits(), 0]);
        assert_eq!(extremes(&[-0.0; 100]), [0, 0]);
        assert_eq!(extremes(&[f64::NEG_INFINITY, 5e-324]), [1, f64::INFINITY.to_bits()]);
        assert_eq!(extremes(&[-3.0; 9]), [3_f64.to_bits(); 2]);
    }
}

#[test]
fn axpy_keeps_the_first_nan() {
    let [a, x, y] = [1, 2, 3].map(|payload| f64::from_bits(0x7ff8_0000_0000_0000 | payload));
    for kernels in everywhere() {
        for n in [1, 5, 40, 333] {
            for (a, x, y, first) in
                [(a, x, y, a), (1.0, x, y, x), (1.0, 1.0, y, y), (a, 1.0, y, a), (a, 1.0, 1.0, a)]
            {
                let (xs, mut ys) = (vec![x; n], vec![y; n]);
                kernels.axpy(a, &xs, &mut ys, &Alone);
                assert!(ys.iter().all(|y| y.to_bits() == first.to_bits()), "n = {n} on {}", kernels.isa());
            }
        }
    }
}

#[test]
fn axpy_by_zero_changes_nothing() {
    for kernels in everywhere() {
        let mut y = [-0.0, 1.0, NA];
        kernels.axpy(-0.0, &[f64::NAN, f64::INFINITY, 1.0][..], &mut y[..], &Alone);
        assert_eq!(y.map(f64::to_bits), [-0.0, 1.0, NA].map(f64::to_bits));
    }
}

#[test]
fn complex_parts_have_separate_nans() {
    let z = |re, im| Complex { re, im };
    for kernels in everywhere() {
        let (x, y) = ([z(1.0, 2.0), z(3.0, NA)], [z(5.0, 7.0), z(1.0, 1.0)]);
        let dot = kernels.dotu(&x[..], &y[..], &Alone);
        assert_eq!([dot.re.to_bits(), dot.im.to_bits()], [QUIET_NA; 2]);
        let dot = kernels.dotu(&x[..1], &y[..1], &Alone);
        assert_eq!(dot, z(5.0 - 14.0, 7.0 + 10.0));
        assert_eq!(kernels.dotc(&x[..1], &y[..1], &Alone), z(5.0 + 14.0, 7.0 - 10.0));
    }
}

#[track_caller]
fn norm(x: &[f64], want: f64) {
    for kernels in everywhere() {
        let got = kernels.nrm2(x, &Alone);
        let close = got == want || (got / want - 1.0).abs() < 1e-15;
        assert!(close, "{got:e}, not {want:e}, on {}", kernels.isa());
        assert_eq!(got.to_bits(), reference::nrm2(x).to_bits());
    }
}

#[test]
fn representable_norms_are_exact_enough() {
    norm(&[3e300, 4e300], 5e300);
    norm(&[3e-310, 4e-310], 5e-310);
    norm(&[5e-324], 5e-324);
    norm(&[5e-324; 4], 1e-323);
    norm(&[f64::MAX], f64::MAX);
    norm(&[f64::MAX, 1.0, 1e-300], f64::MAX);
    norm(&[f64::MAX, f64::MAX], f64::INFINITY);
    norm(&[1.0, f64::NEG_INFINITY], f64::INFINITY);
    norm(&[1e-160; 10_000], 1e-158);
    norm(&[1e200; 10_000], 1e202);
    norm(&[f64::MIN_POSITIVE; 100], f64::MIN_POSITIVE * 10.0);
    norm(&[0.0, -7.0], 7.0);
}

#[test]
fn representable_f32_norms_are_close() {
    for (x, want) in [
        (vec![3e30_f32, 4e30], 5e30_f32),
        (vec![f32::MAX], f32::MAX),
        (vec![1e-45], 1e-45),
        (vec![3e-40, 4e-40], 5e-40),
        (vec![1e-20; 10_000], 1e-18),
        (vec![1e30; 10_000], 1e32),
    ] {
        for kernels in everywhere() {
            let got = kernels.nrm2(&x, &Alone);
            // Subnormal numbers have few digits.
            assert!(
                got == want || (got / want - 1.0).abs() < 1e-5,
                "{got:e}, not {want:e}, on {}",
                kernels.isa()
            );
        }
    }
}

#[test]
fn asum_overflows_only_when_too_large() {
    for kernels in everywhere() {
        assert_eq!(kernels.asum(&[-f64::MAX, 0.0][..], &Alone), f64::MAX);
        assert_eq!(kernels.asum(&[-5e-324, 5e-324][..], &Alone), 1e-323);
        assert_eq!(kernels.asum(&[f64::MAX, f64::MAX][..], &Alone), f64::INFINITY);
    }
}

#[test]
fn long_vectors_keep_the_first_nan() {
    let mut x = vec![0.5_f64; 100_000];
    (x[70_000], x[80_000]) = (NA, -f64::NAN);
    for kernels in everywhere() {
        assert_eq!(kernels.sum(&x, &Alone).to_bits(), QUIET_NA);
        assert!(NA.is_nan() && kernels.nrm2(&x, &Alone).to_bits() == QUIET_NA);
    }
}
