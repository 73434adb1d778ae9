//! How long something takes that is over before a clock has moved: done again and again.

use largesse_machine::cycles::Counter;

/// Seconds of some work.
pub(super) fn seconds(counter: &Counter, work: impl FnOnce()) -> f64 {
    let watch = counter.start();
    work();
    counter.nanoseconds(watch.stop()) * 1e-9
}

/// How often `work`, told how often, is to be done for a sample to last at least `least` seconds.
pub(super) fn times_in_a_sample(counter: &Counter, least: f64, work: &mut dyn FnMut(usize)) -> usize {
    let mut times = 1;
    while seconds(counter, || work(times)) < least {
        times *= 2;
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_short_is_done_more_often() {
        let counter = Counter::clock(None);
        // Long beside what a virtual machine may stand still for.
        let least = Duration::from_millis(250);
        let mut told = Vec::new();
        let mut work = |times| {
            told.push(times);
            if times >= 4 {
                std::thread::sleep(least);
            }
        };
        assert_eq!(times_in_a_sample(&counter, least.as_secs_f64(), &mut work), 4);
        assert_eq!(told, [1, 2, 4]);
        assert_eq!(times_in_a_sample(&counter, 0.0, &mut |_| {}), 1);
    }
}
