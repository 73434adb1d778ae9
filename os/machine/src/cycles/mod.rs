//! Provides a calibrated counter of time, and stopwatches that read it at the right moment and stop once.
//!
//! The processor's counter (TSC, CNTVCT) runs at one rate, whatever the core's clock is. Its ticks are time. If the
//! processor does not guarantee that, or the kernel does not trust it, the system's clock is used instead, and
//! [`Counter::fallback`] says why.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "other.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;
mod fallback;
mod judge;

pub use fallback::Fallback;

use std::path::Path;
use std::time::Duration;

/// Duration of an interval in the first attempt to calibrate. An attempt takes [`PARTS`] intervals.
const SHORTEST: Duration = Duration::from_millis(4);
/// Number of intervals of an attempt to calibrate, whose rates must agree.
const PARTS: usize = 3;
/// Number of attempts to calibrate, each with intervals twice as long as the one before.
const ATTEMPTS: u32 = 4;
/// Relative disagreement of the intervals' rates below which a calibration is accepted at once.
const GOOD: f64 = 2e-5;
/// Relative disagreement of the intervals' rates from which the counter is not used as a clock.
const TOO_MUCH: f64 = 1e-2;

/// A number of ticks of a counter. Ticks are neither nanoseconds nor core cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u64);

impl Ticks {
    /// Creates a number of ticks.
    #[must_use]
    pub const fn new(count: u64) -> Ticks {
        Ticks(count)
    }

    /// Returns the number of ticks.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

/// The clock that a counter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterSource {
    /// The counter is the time stamp counter of x86, read by `rdtsc` and `rdtscp`.
    Tsc,
    /// The counter is the virtual counter of AArch64, `CNTVCT_EL0`.
    VirtualCounter,
    /// The counter is `clock_gettime(CLOCK_MONOTONIC)`, whose ticks are nanoseconds.
    Clock,
}

/// A calibrated clock that measures times.
///
/// ```
/// use largesse_machine::cycles::Counter;
/// let counter = Counter::calibrate();
/// let watch = counter.start();
/// let sum: u64 = std::hint::black_box((1..1000_u64).sum());
/// let spent = watch.stop();
/// assert!(sum > 0 && counter.nanoseconds(spent) < 1e9);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    source: CounterSource,
    hertz: f64,
    uncertainty: f64,
    fallback: Option<Fallback>,
}

/// The precision of a counter.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// Number of ticks between starting and stopping a stopwatch at once, the lowest of 1000 trials.
    pub overhead: Ticks,
    /// Smallest nonzero difference of two consecutive readings, in ticks.
    pub step: Ticks,
    /// Relative disagreement of the rates that were measured in the calibration, below 1 %.
    pub uncertainty: f64,
}

impl Counter {
    /// Checks whether the processor's counter can be trusted, and calibrates it against the system's clock. This takes
    /// 12 ms, or up to 180 ms if the machine is disturbed.
    #[must_use]
    pub fn calibrate() -> Counter {
        match judge::of(Path::new("/"), &arch::facts()) {
            Some(why) => Counter::clock(Some(why)),
            None => measure(arch::SOURCE, arch::now, clock_ns),
        }
    }

    /// Returns a counter that is the system's clock, with the reason for using it.
    #[must_use]
    pub fn clock(fallback: Option<Fallback>) -> Counter {
        Counter { source: CounterSource::Clock, hertz: 1e9, uncertainty: 0.0, fallback }
    }

    /// Returns the clock behind this counter.
    #[must_use]
    pub fn source(&self) -> CounterSource {
        self.source
    }

    /// Returns why the processor's counter is not used, or `None` if it is.
    #[must_use]
    pub fn fallback(&self) -> Option<Fallback> {
        self.fallback
    }

    /// Returns the number of ticks per second.
    #[must_use]
    pub fn hertz(&self) -> f64 {
        self.hertz
    }

    /// Begins a measurement after all earlier memory accesses are complete and before any later instruction begins.
    /// Pass the inputs and outputs of the measured code through [`std::hint::black_box`], because the compiler may
    /// move pure arithmetic.
    #[inline]
    pub fn start(&self) -> Stopwatch {
        Stopwatch { source: self.source, began: self.ordered().0 }
    }

    /// Reads the counter after all earlier instructions are complete and before any later one begins, for callers
    /// without a stopwatch (C).
    #[inline]
    #[must_use]
    pub fn ordered(&self) -> Ticks {
        Ticks(if self.source == CounterSource::Clock { clock_ns() } else { arch::start() })
    }

    /// Reads the counter. Other instructions may move across this, unlike across the start and end of a stopwatch.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Ticks {
        Ticks(if self.source == CounterSource::Clock { clock_ns() } else { arch::now() })
    }

    /// Converts ticks to nanoseconds.
    #[must_use]
    pub fn nanoseconds(&self, ticks: Ticks) -> f64 {
        as_float(ticks.0) * 1e9 / self.hertz
    }

    /// Measures the overhead and the resolution of this counter's measurements.
    #[must_use]
    pub fn precision(&self) -> Precision {
        let overhead = (0..1000).map(|_| self.start().stop()).min().unwrap_or_default();
        let mut step = u64::MAX;
        let mut last = self.now().0;
        for _ in 0..1000 {
            let now = self.now().0;
            step = if now > last { step.min(now - last) } else { step };
            last = now;
        }
        Precision { overhead, step: Ticks(step), uncertainty: self.uncertainty }
    }
}

/// A measurement that has begun. It can be stopped only once:
///
/// ```compile_fail,E0382
/// let watch = largesse_machine::cycles::Counter::clock(None).start();
/// let first = watch.stop();
/// let again = watch.stop(); // it was consumed
/// ```
///
/// and its ticks cannot be mistaken for nanoseconds or cycles:
///
/// ```compile_fail,E0308
/// let watch = largesse_machine::cycles::Counter::clock(None).start();
/// let nanoseconds: u64 = watch.stop();
/// ```
#[derive(Debug)]
#[must_use = "a measurement ends with stop()"]
pub struct Stopwatch {
    source: CounterSource,
    began: u64,
}

impl Stopwatch {
    /// Ends the measurement after all earlier instructions are complete and before any later one begins. Returns its
    /// duration.
    #[inline]
    #[must_use]
    pub fn stop(self) -> Ticks {
        let ended = if self.source == CounterSource::Clock { clock_ns() } else { arch::stop() };
        Ticks(ended.saturating_sub(self.began))
    }
}

/// Measures the rate of a counter against a clock in nanoseconds. Returns that clock if the rates of the intervals
/// disagree.
fn measure(source: CounterSource, counter: impl Fn() -> u64, clock: impl Fn() -> u64) -> Counter {
    let mut best = (0.0, f64::INFINITY);
    for attempt in 0..ATTEMPTS {
        let mut moments = vec![moment(&counter, &clock)];
        for _ in 0..PARTS {
            std::thread::sleep(SHORTEST * 2_u32.pow(attempt));
            moments.push(moment(&counter, &clock));
        }
        let rate = |from: &(u64, u64), to: &(u64, u64)| {
            as_float(to.0.wrapping_sub(from.0)) / as_float(to.1.saturating_sub(from.1)) * 1e9
        };
        let whole = rate(&moments[0], &moments[PARTS]);
        let apart =
            moments.windows(2).map(|pair| (rate(&pair[0], &pair[1]) / whole - 1.0).abs()).fold(0.0, f64::max);
        if apart < best.1 {
            best = (whole, apart);
        }
        if apart < GOOD {
            break;
        }
    }
    let (hertz, uncertainty) = best;
    if uncertainty < TOO_MUCH && hertz > 0.0 {
        Counter { source, hertz, uncertainty, fallback: None }
    } else {
        Counter::clock(Some(Fallback::Unsteady(uncertainty)))
    }
}

/// Reads the counter and the clock at one moment. Of 32 pairs of readings, it returns the pair that was read fastest.
fn moment(counter: impl Fn() -> u64, clock: impl Fn() -> u64) -> (u64, u64) {
    let pairs = (0..32).map(|_| {
        let before = counter();
        let time = clock();
        let took = counter().wrapping_sub(before);
        (took, (before.wrapping_add(took / 2), time))
    });
    pairs.min_by_key(|(took, _)| *took).map_or((0, 0), |(_, pair)| pair)
}

fn clock_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a writable `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of ticks are a month")]
fn as_float(ticks: u64) -> f64 {
    ticks as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_counter_is_calibrated() {
        let counter = measure(CounterSource::Tsc, || clock_ns() * 3 / 2, clock_ns);
        assert_eq!((counter.source(), counter.fallback()), (CounterSource::Tsc, None));
        assert!((counter.hertz() / 1.5e9 - 1.0).abs() < 1e-3, "{}", counter.hertz());
        assert!((counter.nanoseconds(Ticks::new(1_500_000)) / 1e6 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn varying_counter_is_refused() {
        let start = clock_ns();
        let bent = || {
            let time = clock_ns() - start;
            time + time * time / 10_000_000
        };
        let counter = measure(CounterSource::Tsc, bent, clock_ns);
        assert_eq!(counter.source(), CounterSource::Clock);
        assert!(matches!(counter.fallback(), Some(Fallback::Unsteady(_))), "{counter:?}");
    }

    #[test]
    fn stopped_counter_is_refused() {
        let counter = measure(CounterSource::Tsc, || 7, clock_ns);
        assert_eq!(counter.source(), CounterSource::Clock);
    }

    #[test]
    fn stopwatch_agrees_with_clock() {
        for counter in [Counter::calibrate(), Counter::clock(None)] {
            let (before, watch) = (clock_ns(), counter.start());
            std::thread::sleep(Duration::from_millis(20));
            let (seen, true_ns) = (counter.nanoseconds(watch.stop()), as_float(clock_ns() - before));
            assert!(seen >= 20e6 * 0.99 && seen <= true_ns * 1.01, "{counter:?} {seen} {true_ns}");
        }
    }

    #[test]
    fn empty_measurement_is_cheap() {
        let counter = Counter::calibrate();
        let precision = counter.precision();
        assert!(counter.nanoseconds(precision.overhead) < 1e4, "{precision:?}");
        assert!(precision.step.count() > 0 && precision.uncertainty < TOO_MUCH, "{precision:?}");
    }
}
