//! Measures a core's clock rate without a performance counter, by a chain of dependent instructions.

use crate::cycles::Counter;
use std::arch::asm;
use std::time::{Duration, Instant};

/// Number of dependent instructions in a measurement. Each takes one cycle: it adds a register to the result of the
/// one before. (New processors would fold several additions of a constant into one.)
const CHAIN: u32 = 64 * ROUNDS;
const ROUNDS: u32 = 512;
/// Duration of a measurement, which looks for the highest rate, because an idle core takes milliseconds to reach its
/// full clock.
const DURATION: Duration = Duration::from_millis(60);

/// The measured clock rate of a core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreClock {
    /// Highest number of cycles per second of all measurements.
    pub hertz: f64,
    /// Relative distance of the median measurement below the highest. Other programs and clock changes cause it.
    pub spread: f64,
}

impl CoreClock {
    /// Measures the clock rate of the core on which the calling thread runs, for 60 ms. Returns `None` on
    /// architectures without a known one-cycle instruction.
    #[must_use]
    pub fn measure(counter: &Counter) -> Option<CoreClock> {
        let began = Instant::now();
        let mut rates = Vec::new();
        while began.elapsed() < DURATION || rates.len() < 9 {
            let watch = counter.start();
            chain()?;
            rates.push(f64::from(CHAIN) * 1e9 / counter.nanoseconds(watch.stop()).max(1.0));
        }
        rates.sort_by(f64::total_cmp);
        let (best, middle) = (*rates.last()?, rates[rates.len() / 2]);
        Some(CoreClock { hertz: best, spread: 1.0 - middle / best })
    }

    /// Returns the number of core cycles for each tick of the counter.
    #[must_use]
    pub fn per_tick(&self, counter: &Counter) -> f64 {
        self.hertz / counter.hertz()
    }
}

#[cfg(target_arch = "x86_64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
fn chain() -> Option<()> {
    // SAFETY: only registers are used, all named.
    unsafe {
        asm!(
            "2:", ".rept 64", "add {sum}, {one}", ".endr", "dec {left:e}", "jnz 2b",
            sum = inout(reg) 0_u64 => _, one = in(reg) 1_u64, left = inout(reg) ROUNDS => _,
            options(nomem, nostack)
        );
    }
    Some(())
}

#[cfg(target_arch = "aarch64")]
#[expect(clippy::unnecessary_wraps, reason = "other processors have none")]
fn chain() -> Option<()> {
    // SAFETY: only registers are used, all named.
    unsafe {
        asm!(
            "2:", ".rept 64", "add {sum}, {sum}, {one}", ".endr", "subs {left:w}, {left:w}, #1", "b.ne 2b",
            sum = inout(reg) 0_u64 => _, one = in(reg) 1_u64, left = inout(reg) ROUNDS => _,
            options(nomem, nostack)
        );
    }
    Some(())
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain() -> Option<()> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_clock_is_plausible() {
        let counter = Counter::calibrate();
        let clock = CoreClock::measure(&counter).unwrap();
        assert!((1e8..1e10).contains(&clock.hertz), "{clock:?}");
        assert!((0.0..1.0).contains(&clock.spread), "{clock:?}");
        // A counter of twice the rate has half the cycles per tick.
        assert!((0.01..100.0).contains(&clock.per_tick(&counter)), "{clock:?}");
    }
}
