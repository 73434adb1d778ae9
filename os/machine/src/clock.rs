//! How fast a core runs, without a performance counter: by instructions that wait for each other.

use crate::cycles::Counter;
use std::arch::asm;
use std::time::{Duration, Instant};

/// Instructions in a row, one cycle each: an addition of two registers whose result is the next one's operand. With
/// a constant, new processors fold several into one.
const CHAIN: u32 = 64 * ROUNDS;
const ROUNDS: u32 = 512;
/// So long the fastest is looked for: a core that was idle takes milliseconds to its full clock.
const PATIENCE: Duration = Duration::from_millis(60);

/// The clock of the core that asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoreClock {
    /// Cycles in a second, at best.
    pub hertz: f64,
    /// How far below the middle measurement was, relative: what else ran, and changes of the clock.
    pub spread: f64,
}

impl CoreClock {
    /// Measures it, for 60 ms; `None` for a kind of processor on which no instruction is known to take one cycle.
    #[must_use]
    pub fn measure(counter: &Counter) -> Option<CoreClock> {
        let began = Instant::now();
        let mut rates = Vec::new();
        while began.elapsed() < PATIENCE || rates.len() < 9 {
            let watch = counter.start();
            chain()?;
            rates.push(f64::from(CHAIN) * 1e9 / counter.nanoseconds(watch.stop()).max(1.0));
        }
        rates.sort_by(f64::total_cmp);
        let (best, middle) = (*rates.last()?, rates[rates.len() / 2]);
        Some(CoreClock { hertz: best, spread: 1.0 - middle / best })
    }

    /// Core cycles for each tick of the counter: never 1 by nature.
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
    fn a_core_runs_between_a_tenth_and_ten_gigahertz() {
        let counter = Counter::calibrate();
        let clock = CoreClock::measure(&counter).unwrap();
        assert!((1e8..1e10).contains(&clock.hertz), "{clock:?}");
        assert!((0.0..1.0).contains(&clock.spread), "{clock:?}");
        // Twice the ticks a second: half the cycles a tick.
        assert!((0.01..100.0).contains(&clock.per_tick(&counter)), "{clock:?}");
    }
}
