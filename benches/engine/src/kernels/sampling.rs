//! Times work that is shorter than a clock tick by repeating it.

use largesse_machine::cycles::Counter;

/// Returns the seconds that `work` takes.
pub(super) fn seconds(counter: &Counter, work: impl FnOnce()) -> f64 {
    let watch = counter.start();
    work();
    counter.nanoseconds(watch.stop()) * 1e-9
}

/// Returns how often `work` has to be repeated for a sample to last at least `least` seconds. Its argument is the
/// number.
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
    fn short_work_is_repeated_more() {
        let counter = Counter::clock(None);
        // The work is long compared with the pauses of a virtual machine.
        let least = Duration::from_millis(250);
        let mut event = Vec::new();
        let mut work = |times| {
            event.push(times);
            if times >= 4 {
                std::thread::sleep(least);
            }
        };
        assert_eq!(times_in_a_sample(&counter, least.as_secs_f64(), &mut work), 4);
        assert_eq!(event, [1, 2, 4]);
        assert_eq!(times_in_a_sample(&counter, 0.0, &mut |_| {}), 1);
    }
}
