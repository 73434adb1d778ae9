//! Tests the detection of instruction sets: a processor without one gets the next, with the same bits.

#![expect(clippy::cast_possible_truncation, reason = "an `f32` is a rounded `f64`")]

mod support;

use largesse_kernels::{Alone, Isa, Kernels};
use support::everywhere;

#[test]
fn best_is_first_available() {
    let first = Isa::ALL.into_iter().find(|isa| isa.is_available()).unwrap();
    assert_eq!(Kernels::best().isa(), first);
    for isa in Isa::ALL {
        assert_eq!(Kernels::of(isa).map(|kernels| kernels.isa()), isa.is_available().then_some(isa));
        assert_eq!(isa.name().parse(), Ok(isa));
    }
    assert_eq!("avx".parse::<Isa>(), Err(()));
}

/// Compares results with those of a processor with AVX-512. `ci/isa.sh` runs this test on emulated processors, without
/// AVX-512 or of another architecture. With their instruction sets, and the C library's `fma`, they must give the same
/// bits.
#[test]
fn bits_match_other_machines() {
    let x: Vec<f64> = (1..=1000).map(|i| f64::from(i).recip()).collect();
    let y: Vec<f64> = (1..=1000).map(|i| f64::from(i).sqrt() * if i % 3 == 0 { -1.0 } else { 1.0 }).collect();
    let (x32, y32): (Vec<f32>, Vec<f32>) = x.iter().zip(&y).map(|(x, y)| (*x as f32, *y as f32)).unzip();
    // Products that a separately rounded multiplication would lose.
    let hard: Vec<f64> = (1..=1000).map(|i| 1.0 + f64::EPSILON * f64::from(i)).collect();
    let opposite: Vec<f64> = (1..=1000).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 + f64::EPSILON }).collect();
    let tiny: Vec<f64> = hard.iter().map(|x| x * 1e-160).collect();
    for kernels in everywhere() {
        let bits = [
            kernels.sum(&x, &Alone).to_bits(),
            kernels.asum(&y, &Alone).to_bits(),
            kernels.sumsq(&x, &Alone).to_bits(),
            kernels.nrm2(&tiny, &Alone).to_bits(),
            kernels.dot(&x, &y, &Alone).to_bits(),
            kernels.dot(&hard, &opposite, &Alone).to_bits(),
            kernels.dot(&tiny, &tiny, &Alone).to_bits(),
            u64::from(kernels.sum(&x32, &Alone).to_bits()),
            u64::from(kernels.dot(&x32, &y32, &Alone).to_bits()),
        ];
        assert_eq!(bits, WANT, "{}: {bits:#x?}", kernels.isa());
    }
}

const WANT: [u64; 9] = [
    0x401d_f11f_45f4_e619,
    0x40d4_9a5d_2d42_af1a,
    0x3ffa_4d8e_550a_9467,
    0x1f06_3ab9_d052_a28f,
    0x4035_5023_1351_8312,
    0x3d40_0000_0000_0000,
    0x1e_e240,
    0x40ef_88fa,
    0x41aa_8119,
];
