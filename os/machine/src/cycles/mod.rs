//! A cycle counter that cannot be misread: fenced, calibrated, and stopped once.
//!
//! The processor's counter (TSC, CNTVCT) runs at one rate, whatever the clock of the core does. Its ticks are time.
//! Where that is not so, or nobody vouches for it, the counter here is the system's clock, and says why.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod arch;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "other.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod arch;
mod judge;

use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The first attempt to calibrate, of which each takes [`PARTS`] times as long.
const SHORTEST: Duration = Duration::from_millis(4);
/// Intervals that have to agree.
const PARTS: usize = 3;
/// How often the interval is doubled when they do not.
const ATTEMPTS: u32 = 4;
/// Disagreement, relative, at which a calibration is good.
const GOOD: f64 = 2e-5;
/// Disagreement at which the counter is no clock.
const TOO_MUCH: f64 = 1e-2;

/// Ticks of a counter: neither nanoseconds nor core cycles, whose clock is another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(u64);

impl Ticks {
    /// A number of them.
    #[must_use]
    pub const fn new(count: u64) -> Ticks {
        Ticks(count)
    }

    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The time stamp counter of x86, read by `rdtsc` and `rdtscp`.
    Tsc,
    /// The virtual counter of AArch64, `CNTVCT_EL0`.
    VirtualCounter,
    /// `clock_gettime(CLOCK_MONOTONIC)`: ticks are nanoseconds.
    Clock,
}

/// Why the processor's counter is not used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fallback {
    /// The processor (or the virtual machine) does not promise that its counter runs at one rate.
    NotInvariant,
    /// The kernel has stopped using it as a clock.
    Distrusted,
    /// This process may not read it (`prctl(PR_SET_TSC)`).
    Forbidden,
    /// Its rate against the clock was not the same twice; so much, relative.
    Unsteady(f64),
    /// No counter is known for this kind of processor.
    NoCounter,
}

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fallback::NotInvariant => write!(f, "the counter is not invariant (CPUID 8000_0007h, EDX bit 8)"),
            Fallback::Distrusted => write!(f, "the kernel does not offer the counter as a clock source"),
            Fallback::Forbidden => write!(f, "this process may not read the counter (PR_SET_TSC)"),
            Fallback::Unsteady(apart) => write!(f, "the counter's rate varies by {:.1} %", apart * 100.0),
            Fallback::NoCounter => write!(f, "no counter is known for this kind of processor"),
        }
    }
}

/// A calibrated counter.
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
    source: Source,
    hertz: f64,
    uncertainty: f64,
    fallback: Option<Fallback>,
}

/// How exact a counter is.
#[derive(Clone, Copy, Debug)]
pub struct Precision {
    /// The least that anything takes: a stopwatch started and stopped at once.
    pub overhead: Ticks,
    /// The smallest difference of two readings.
    pub step: Ticks,
    /// How far the calibrations of the rate were apart, relative.
    pub uncertainty: f64,
}

impl Counter {
    /// Looks whether the processor's counter can be trusted, and compares it with the clock: 12 ms, or some more on a
    /// machine that is disturbed.
    #[must_use]
    pub fn calibrate() -> Counter {
        match judge::of(Path::new("/"), &arch::facts()) {
            Some(why) => Counter::clock(Some(why)),
            None => measure(arch::SOURCE, arch::now, clock_ns),
        }
    }

    /// The system's clock, whatever the processor has.
    #[must_use]
    pub fn clock(fallback: Option<Fallback>) -> Counter {
        Counter { source: Source::Clock, hertz: 1e9, uncertainty: 0.0, fallback }
    }

    /// What counts.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Why it is not the processor's counter, where it is not.
    #[must_use]
    pub fn fallback(&self) -> Option<Fallback> {
        self.fallback
    }

    /// Ticks in a second.
    #[must_use]
    pub fn hertz(&self) -> f64 {
        self.hertz
    }

    /// Begins a measurement: what was written before is done first, nothing that comes later begins earlier. Pass
    /// what the measured code needs and makes through [`std::hint::black_box`]: the compiler may move pure arithmetic.
    #[inline]
    pub fn start(&self) -> Stopwatch {
        Stopwatch { source: self.source, began: self.ordered().0 }
    }

    /// A reading with everything before it done and nothing after it begun, for callers that have no stopwatch (C).
    #[inline]
    #[must_use]
    pub fn ordered(&self) -> Ticks {
        Ticks(if self.source == Source::Clock { clock_ns() } else { arch::start() })
    }

    /// A reading between others, without the fences of a stopwatch.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Ticks {
        Ticks(if self.source == Source::Clock { clock_ns() } else { arch::now() })
    }

    /// Time.
    #[must_use]
    pub fn nanoseconds(&self, ticks: Ticks) -> f64 {
        as_float(ticks.0) * 1e9 / self.hertz
    }

    /// Measures what measuring costs.
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

/// A measurement that has begun. It ends once:
///
/// ```compile_fail,E0382
/// let watch = largesse_machine::cycles::Counter::clock(None).start();
/// let first = watch.stop();
/// let again = watch.stop(); // it was consumed
/// ```
///
/// and its ticks are no number that could be taken for nanoseconds or cycles:
///
/// ```compile_fail,E0308
/// let watch = largesse_machine::cycles::Counter::clock(None).start();
/// let nanoseconds: u64 = watch.stop();
/// ```
#[derive(Debug)]
#[must_use = "a measurement ends with stop()"]
pub struct Stopwatch {
    source: Source,
    began: u64,
}

impl Stopwatch {
    /// Ends it: what was asked before is done, and nothing that comes later has begun.
    #[inline]
    #[must_use]
    pub fn stop(self) -> Ticks {
        let ended = if self.source == Source::Clock { clock_ns() } else { arch::stop() };
        Ticks(ended.saturating_sub(self.began))
    }
}

/// The rate of a counter against a clock in nanoseconds, or that clock where they do not agree.
fn measure(source: Source, counter: impl Fn() -> u64, clock: impl Fn() -> u64) -> Counter {
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

/// Both at one moment: the pair that was read quickest.
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
    // SAFETY: `now` is a valid place for the answer.
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
    fn a_steady_counter_is_calibrated() {
        let counter = measure(Source::Tsc, || clock_ns() * 3 / 2, clock_ns);
        assert_eq!((counter.source(), counter.fallback()), (Source::Tsc, None));
        assert!((counter.hertz() / 1.5e9 - 1.0).abs() < 1e-3, "{}", counter.hertz());
        assert!((counter.nanoseconds(Ticks::new(1_500_000)) / 1e6 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_counter_whose_rate_changes_is_refused() {
        let start = clock_ns();
        let bent = || {
            let time = clock_ns() - start;
            time + time * time / 10_000_000
        };
        let counter = measure(Source::Tsc, bent, clock_ns);
        assert_eq!(counter.source(), Source::Clock);
        assert!(matches!(counter.fallback(), Some(Fallback::Unsteady(_))), "{counter:?}");
    }

    #[test]
    fn a_counter_that_stands_still_is_refused() {
        let counter = measure(Source::Tsc, || 7, clock_ns);
        assert_eq!(counter.source(), Source::Clock);
    }

    #[test]
    fn a_watch_measures_what_the_clock_measures() {
        for counter in [Counter::calibrate(), Counter::clock(None)] {
            let (before, watch) = (clock_ns(), counter.start());
            std::thread::sleep(Duration::from_millis(20));
            let (seen, true_ns) = (counter.nanoseconds(watch.stop()), as_float(clock_ns() - before));
            assert!(seen >= 20e6 * 0.99 && seen <= true_ns * 1.01, "{counter:?} {seen} {true_ns}");
        }
    }

    #[test]
    fn an_empty_measurement_costs_less_than_ten_microseconds() {
        let counter = Counter::calibrate();
        let precision = counter.precision();
        assert!(counter.nanoseconds(precision.overhead) < 1e4, "{precision:?}");
        assert!(precision.step.count() > 0 && precision.uncertainty < TOO_MUCH, "{precision:?}");
    }
}
