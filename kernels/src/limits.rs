//! Measures what the processor can do at most, as the value that the speed of kernels is divided by: loops of loads
//! without sums, and of operations without loads.
//!
//! The loops are assembly, so that no compiler removes them for having no result. Callers measure the time.

use crate::Isa;

/// The loops of one instruction set that load, add or multiply as fast as the processor can.
#[derive(Clone, Copy, Debug)]
pub struct Limits(Isa);

/// Number of elements that [`Limits::read`] and [`Limits::update`] process at a time.
pub const STRIDE: usize = 64;
/// Number of independent chains of operations: more than any processor needs to be saturated.
const CHAINS: usize = 12;
/// Number of operations of a chain in one iteration of the loop.
const ROW: usize = 100;

impl Limits {
    /// Returns the limits of an instruction set, or `None` if it is not available or there is no assembly for it.
    #[must_use]
    pub fn of(isa: Isa) -> Option<Limits> {
        (cfg!(target_arch = "x86_64") && isa != Isa::Portable && isa.is_available()).then_some(Limits(isa))
    }

    /// Loads all of `x` in order, `passes` times, except a remainder of fewer than [`STRIDE`] elements.
    pub fn read(self, x: &[f64], passes: usize) {
        let (start, end) = (x.as_ptr(), x[x.len() / STRIDE * STRIDE..].as_ptr());
        if start < end && passes > 0 {
            // SAFETY: loads within the slice, with an available instruction set.
            unsafe { assembly::read(self.0, start, end, passes) };
        }
    }

    /// Loads all of `x` and `y`, and stores the elements of `y` unchanged, `passes` times, except a remainder of fewer
    /// than [`STRIDE`] elements.
    ///
    /// # Panics
    /// Panics if the lengths differ.
    pub fn update(self, x: &[f64], y: &mut [f64], passes: usize) {
        assert_eq!(x.len(), y.len());
        let (start, end) = (x.as_ptr(), x[x.len() / STRIDE * STRIDE..].as_ptr());
        if start < end && passes > 0 {
            // SAFETY: as in `read`; `y` is as long as `x`.
            unsafe { assembly::update(self.0, start, end, y.as_mut_ptr(), passes) };
        }
    }

    /// Executes at least one round, and `rounds` rounds if more, of independent additions. Returns the number of
    /// additions.
    #[must_use]
    pub fn additions(self, rounds: usize) -> usize {
        // SAFETY: the instruction set is available.
        unsafe { assembly::additions(self.0, rounds.max(1)) };
        rounds.max(1) * CHAINS * self.lanes()
    }

    /// Executes at least one round, and `rounds` rounds if more, of independent fused multiply-adds. Returns the
    /// number of operations, two for each fused multiply-add, or `None` if the instruction set has none.
    #[must_use]
    pub fn multiply_adds(self, rounds: usize) -> Option<usize> {
        if self.0 == Isa::Sse2 {
            return None;
        }
        // SAFETY: the instruction set is available.
        unsafe { assembly::multiply_adds(self.0, rounds.max(1)) };
        Some(rounds.max(1) * CHAINS * self.lanes() * 2)
    }

    /// Returns the number of `f64` in a register.
    fn lanes(self) -> usize {
        match self.0 {
            Isa::Avx512 => 8,
            Isa::Avx2 => 4,
            _ => 2,
        }
    }
}

/// A chain of dependent operations: each needs the result of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// The operations are floating-point additions.
    Additions,
    /// The operations are floating-point multiplications.
    Multiplications,
}

impl Chain {
    /// Executes `hundreds` times 100 operations of the chain, and at least 100. Returns their number, or `None` if
    /// there is no assembly for this architecture.
    #[must_use]
    pub fn run(self, hundreds: usize) -> Option<usize> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        assembly::chain(self, hundreds.max(1));
        Some(hundreds.max(1) * ROW)
    }
}

#[cfg(target_arch = "x86_64")]
mod assembly {
    use super::{Chain, Isa};
    use core::arch::asm;

    /// Expands to a loop that executes `passes` times a loop of eight loads from `start` to `end`.
    macro_rules! read {
        ($mov:literal, $register:literal, $width:literal, $start:ident, $end:ident, $passes:ident) => {
            asm!(
                "2:", "mov {at}, {start}",
                "3:",
                concat!($mov, " ", $register, "0, [{at}]"),
                concat!($mov, " ", $register, "1, [{at} + ", $width, "]"),
                concat!($mov, " ", $register, "2, [{at} + 2*", $width, "]"),
                concat!($mov, " ", $register, "3, [{at} + 3*", $width, "]"),
                concat!($mov, " ", $register, "4, [{at} + 4*", $width, "]"),
                concat!($mov, " ", $register, "5, [{at} + 5*", $width, "]"),
                concat!($mov, " ", $register, "6, [{at} + 6*", $width, "]"),
                concat!($mov, " ", $register, "7, [{at} + 7*", $width, "]"),
                concat!("add {at}, 8*", $width),
                "cmp {at}, {end}", "jb 3b",
                "dec {passes}", "jnz 2b",
                at = out(reg) _, start = in(reg) $start, end = in(reg) $end, passes = inout(reg) $passes => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                options(nostack),
            )
        };
    }

    pub(super) unsafe fn read(isa: Isa, start: *const f64, end: *const f64, passes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match isa {
                Isa::Avx512 => read!("vmovupd", "zmm", "64", start, end, passes),
                Isa::Avx2 => read!("vmovupd", "ymm", "32", start, end, passes),
                _ => read!("movupd", "xmm", "16", start, end, passes),
            }
            clean(isa);
        }
    }

    /// Expands to a loop that executes `passes` times a loop of four steps, each of which loads from `x` and `y` and
    /// stores to `y`.
    macro_rules! update {
        ($mov:literal, $register:literal, $width:literal, $start:ident, $end:ident, $y:ident, $passes:ident) => {
            asm!(
                "2:", "mov {at}, {start}", "mov {to}, {y}",
                "3:",
                concat!($mov, " ", $register, "0, [{at}]"),
                concat!($mov, " ", $register, "1, [{to}]"),
                concat!($mov, " [{to}], ", $register, "1"),
                concat!($mov, " ", $register, "2, [{at} + ", $width, "]"),
                concat!($mov, " ", $register, "3, [{to} + ", $width, "]"),
                concat!($mov, " [{to} + ", $width, "], ", $register, "3"),
                concat!($mov, " ", $register, "4, [{at} + 2*", $width, "]"),
                concat!($mov, " ", $register, "5, [{to} + 2*", $width, "]"),
                concat!($mov, " [{to} + 2*", $width, "], ", $register, "5"),
                concat!($mov, " ", $register, "6, [{at} + 3*", $width, "]"),
                concat!($mov, " ", $register, "7, [{to} + 3*", $width, "]"),
                concat!($mov, " [{to} + 3*", $width, "], ", $register, "7"),
                concat!("add {at}, 4*", $width), concat!("add {to}, 4*", $width),
                "cmp {at}, {end}", "jb 3b",
                "dec {passes}", "jnz 2b",
                at = out(reg) _, to = out(reg) _, start = in(reg) $start, end = in(reg) $end, y = in(reg) $y,
                passes = inout(reg) $passes => _,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                options(nostack),
            )
        };
    }

    pub(super) unsafe fn update(isa: Isa, start: *const f64, end: *const f64, y: *mut f64, passes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match isa {
                // Stores of 64 bytes are slower.
                Isa::Avx512 | Isa::Avx2 => update!("vmovupd", "ymm", "32", start, end, y, passes),
                _ => update!("movupd", "xmm", "16", start, end, y, passes),
            }
            clean(isa);
        }
    }

    /// Clears the upper halves of the vector registers, because SSE instructions are slower while they hold data.
    unsafe fn clean(isa: Isa) {
        if isa != Isa::Sse2 {
            // SAFETY: the caller promises that the instruction set is available.
            unsafe { asm!("vzeroupper", options(nostack, nomem)) };
        }
    }

    /// Expands to a loop that executes one instruction on each of twelve registers.
    macro_rules! twelve {
        ($operation:literal, $register:literal, $rest:literal, $rounds:ident) => {
            asm!(
                "2:",
                concat!($operation, " ", $register, "0", $rest), concat!($operation, " ", $register, "1", $rest),
                concat!($operation, " ", $register, "2", $rest), concat!($operation, " ", $register, "3", $rest),
                concat!($operation, " ", $register, "4", $rest), concat!($operation, " ", $register, "5", $rest),
                concat!($operation, " ", $register, "6", $rest), concat!($operation, " ", $register, "7", $rest),
                concat!($operation, " ", $register, "8", $rest), concat!($operation, " ", $register, "9", $rest),
                concat!($operation, " ", $register, "10", $rest), concat!($operation, " ", $register, "11", $rest),
                "dec {rounds}", "jnz 2b",
                rounds = inout(reg) $rounds => _,
                inout("xmm0") 0.0 => _, inout("xmm1") 0.0 => _, inout("xmm2") 0.0 => _, inout("xmm3") 0.0 => _,
                inout("xmm4") 0.0 => _, inout("xmm5") 0.0 => _, inout("xmm6") 0.0 => _, inout("xmm7") 0.0 => _,
                inout("xmm8") 0.0 => _, inout("xmm9") 0.0 => _, inout("xmm10") 0.0 => _, inout("xmm11") 0.0 => _,
                inout("xmm12") 0.0 => _, inout("xmm13") 0.0 => _,
                options(nostack, nomem),
            )
        };
    }

    pub(super) unsafe fn multiply_adds(isa: Isa, rounds: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match isa {
                Isa::Avx512 => twelve!("vfmadd231pd", "zmm", ", zmm12, zmm13", rounds),
                _ => twelve!("vfmadd231pd", "ymm", ", ymm12, ymm13", rounds),
            }
            clean(isa);
        }
    }

    /// Expands to a loop that adds to each of twelve registers, by instructions with three operands.
    macro_rules! additions {
        ($register:literal, $rounds:ident) => {
            asm!(
                "2:",
                concat!("vaddpd ", $register, "0, ", $register, "0, ", $register, "12"),
                concat!("vaddpd ", $register, "1, ", $register, "1, ", $register, "12"),
                concat!("vaddpd ", $register, "2, ", $register, "2, ", $register, "12"),
                concat!("vaddpd ", $register, "3, ", $register, "3, ", $register, "12"),
                concat!("vaddpd ", $register, "4, ", $register, "4, ", $register, "12"),
                concat!("vaddpd ", $register, "5, ", $register, "5, ", $register, "12"),
                concat!("vaddpd ", $register, "6, ", $register, "6, ", $register, "12"),
                concat!("vaddpd ", $register, "7, ", $register, "7, ", $register, "12"),
                concat!("vaddpd ", $register, "8, ", $register, "8, ", $register, "12"),
                concat!("vaddpd ", $register, "9, ", $register, "9, ", $register, "12"),
                concat!("vaddpd ", $register, "10, ", $register, "10, ", $register, "12"),
                concat!("vaddpd ", $register, "11, ", $register, "11, ", $register, "12"),
                "dec {rounds}", "jnz 2b",
                rounds = inout(reg) $rounds => _,
                inout("xmm0") 0.0 => _, inout("xmm1") 0.0 => _, inout("xmm2") 0.0 => _, inout("xmm3") 0.0 => _,
                inout("xmm4") 0.0 => _, inout("xmm5") 0.0 => _, inout("xmm6") 0.0 => _, inout("xmm7") 0.0 => _,
                inout("xmm8") 0.0 => _, inout("xmm9") 0.0 => _, inout("xmm10") 0.0 => _, inout("xmm11") 0.0 => _,
                inout("xmm12") 0.0 => _,
                options(nostack, nomem),
            )
        };
    }
    pub(super) unsafe fn additions(isa: Isa, rounds: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match isa {
                Isa::Avx512 => additions!("zmm", rounds),
                Isa::Avx2 => additions!("ymm", rounds),
                _ => twelve!("addpd", "xmm", ", xmm12", rounds),
            }
            clean(isa);
        }
    }

    pub(super) fn chain(chain: Chain, hundreds: usize) {
        // SAFETY: registers only.
        unsafe {
            match chain {
                Chain::Additions => asm!(
                    "2:", ".rept 100", "addsd {sum}, {one}", ".endr", "dec {n}", "jnz 2b",
                    sum = inout(xmm_reg) 1.0_f64 => _, one = in(xmm_reg) 1.0_f64, n = inout(reg) hundreds => _,
                    options(nostack, nomem),
                ),
                Chain::Multiplications => asm!(
                    "2:", ".rept 100", "mulsd {product}, {one}", ".endr", "dec {n}", "jnz 2b",
                    product = inout(xmm_reg) 1.0_f64 => _, one = in(xmm_reg) 1.0_f64, n = inout(reg) hundreds => _,
                    options(nostack, nomem),
                ),
            }
        }
    }
}

/// Empty functions for architectures without assembly. They are never called, because `Limits::of` and `Chain::run`
/// return `None`.
#[cfg(not(target_arch = "x86_64"))]
mod assembly {
    use super::{Chain, Isa};

    pub(super) unsafe fn read(_: Isa, _: *const f64, _: *const f64, _: usize) {}
    pub(super) unsafe fn update(_: Isa, _: *const f64, _: *const f64, _: *mut f64, _: usize) {}
    pub(super) unsafe fn multiply_adds(_: Isa, _: usize) {}
    pub(super) unsafe fn additions(_: Isa, _: usize) {}
    pub(super) fn chain(_: Chain, _: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn update_changes_nothing() {
        let (x, y) = (vec![1.0; 1000], (0..1000).map(f64::from).collect::<Vec<_>>());
        for limits in Isa::ALL.into_iter().filter_map(Limits::of) {
            let mut updated = y.clone();
            limits.update(&x, &mut updated, 3);
            limits.read(&x, 3);
            assert_eq!(updated, y);
        }
    }

    #[test]
    fn chains_are_slower_than_independent_operations() {
        let Some(limits) = Isa::ALL.into_iter().find_map(Limits::of) else { return };
        let per_second = |count: &dyn Fn() -> Option<usize>| {
            let once = || {
                let start = std::time::Instant::now();
                count().map(|count| count as f64 / start.elapsed().as_secs_f64())
            };
            (0..20).filter_map(|_| once()).fold(0.0, f64::max)
        };
        for chain in [Chain::Additions, Chain::Multiplications] {
            assert_eq!(chain.run(3), Some(300));
            // Other work on the machine can slow either, so that several comparisons are made.
            let rates = || (per_second(&|| chain.run(100)), per_second(&|| Some(limits.additions(1000))));
            let slower = (0..50).map(|_| rates()).find(|(chained, independent)| 2.0 * chained < *independent);
            assert!(slower.is_some(), "{chain:?}: {:?}", rates());
        }
    }
}
