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
        let mut nap = |times: usize| std::thread::sleep(Duration::from_millis(times as u64));
        let times = times_in_a_sample(&counter, 0.005, &mut nap);
        assert!((2..=8).contains(&times), "{times}");
        assert!(seconds(&counter, || nap(5)) >= 0.005);
        assert_eq!(times_in_a_sample(&counter, 0.0, &mut |_| {}), 1);
    }
}
