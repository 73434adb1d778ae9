//! In other rounding modes, and with subnormal numbers flushed to zero, instruction sets with a fused multiply-add
//! still agree, with any number of threads.
#![cfg(target_arch = "x86_64")]

mod support;

use largesse_kernels::{Alone, Isa, Kernels, Team, Vector, VectorMut};
use std::arch::asm;
use support::everywhere;

/// The bits of MXCSR that select rounding down. The constants below are further modes.
const DOWN: u32 = 1 << 13;
const UP: u32 = 2 << 13;
const TOWARDS_ZERO: u32 = 3 << 13;
const FLUSH: u32 = 1 << 15 | 1 << 6;

struct Pair;

impl Team for Pair {
    fn size(&self) -> usize {
        2
    }

    fn run(&self, members: usize, work: &(dyn Fn(usize) + Sync)) {
        // These threads start in the usual mode.
        usual(|| {
            std::thread::scope(|scope| {
                for member in 0..members {
                    scope.spawn(move || work(member));
                }
            });
        });
    }
}

fn mode() -> u32 {
    let mut word = 0_u32;
    // SAFETY: stores a control register.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word) };
    word
}

fn set(word: u32) {
    // SAFETY: only the kernels compute until it is set back.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word) };
}

fn usual<T>(work: impl FnOnce() -> T) -> T {
    let before = mode();
    set(0x1f80);
    let result = work();
    set(before);
    result
}

/// Returns the results of all kernels as bits, computed with the mode `bits` in MXCSR.
fn results(kernels: Kernels, bits: u32, x: &[f64], y: &[f64], team: &dyn Team) -> Vec<u64> {
    let reversed = Vector::strided(x, -1, x.len()).unwrap();
    let mut new = y.to_vec();
    let view = VectorMut::from(&mut new);
    set(0x1f80 | bits);
    let sums = [
        kernels.sum(x, team),
        kernels.asum(y, team),
        kernels.sumsq(x, team),
        kernels.nrm2(x, team),
        kernels.dot(x, y, team),
        kernels.dot(reversed, y, team),
    ];
    kernels.axpy(1.0 / 3.0, x, view, team);
    set(0x1f80);
    sums.iter().chain(&new).map(|result| result.to_bits()).collect()
}

#[test]
fn fused_sets_agree_in_every_mode() {
    let ordinary: Vec<f64> =
        (1..=1_100_000).map(|i| f64::from(i).recip() * if i % 7 == 0 { -1.0 } else { 1.0 }).collect();
    let tiny: Vec<f64> = ordinary.iter().map(|x| x * 1e-308).collect();
    let (reference, fused): (Kernels, Vec<Kernels>) = {
        let all: Vec<Kernels> =
            everywhere().filter(|kernels| matches!(kernels.isa(), Isa::Avx512 | Isa::Avx2)).collect();
        let Some(first) = all.first() else { return };
        (*first, all)
    };
    for x in [&ordinary, &tiny] {
        let in_usual = results(reference, 0, x, &ordinary, &Alone);
        for bits in [DOWN, UP, TOWARDS_ZERO, FLUSH] {
            let want = results(reference, bits, x, &ordinary, &Alone);
            for kernels in &fused {
                for team in [&Alone as &dyn Team, &Pair] {
                    let got = results(*kernels, bits, x, &ordinary, team);
                    assert!(got == want, "{} in mode {bits:#x}, {} threads", kernels.isa(), team.size());
                }
            }
            // The mode was in force: it changes some of these results.
            assert!(bits == FLUSH && x[0] == 1.0 || want != in_usual, "mode {bits:#x}");
        }
    }
}
