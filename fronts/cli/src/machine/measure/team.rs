//! Threads that stay on their processors, begin together, and are timed together.

use largesse_machine::cycles::Counter;
use largesse_machine::{Bitmap, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs `work` on each part, by a thread on the processor beside it, `repeats` times. The seconds of each repetition are
/// from the first that began to the last that ended; `None` when a thread could not stay where it should.
pub(super) fn run<T: Send>(
    counter: &Counter,
    parts: Vec<(u32, T)>,
    repeats: usize,
    work: impl Fn(&mut T) + Sync,
) -> Option<Vec<f64>> {
    let meeting = Meeting { all: parts.len(), arrived: AtomicUsize::new(0), is_over: AtomicBool::new(false) };
    let (meeting, work) = (&meeting, &work);
    let one = |cpu: u32, mut part: T| {
        // Who cannot stay comes to the meetings all the same: the others wait.
        let stays = pin::thread(&[cpu].into_iter().collect::<Bitmap>()).is_ok();
        let mut seen = Vec::new();
        let _over = OverByPanic(meeting);
        for _ in 0..repeats {
            meeting.wait();
            let began = counter.ordered();
            work(&mut part);
            seen.push((began, counter.ordered()));
        }
        stays.then_some(seen)
    };
    let all: Option<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            parts.into_iter().map(|(cpu, part)| scope.spawn(move || one(cpu, part))).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    });
    let all = all?;
    let span = |number: usize| {
        let began = all.iter().map(|seen| seen[number].0.count()).min()?;
        let ended = all.iter().map(|seen| seen[number].1.count()).max()?;
        let ticks = largesse_machine::cycles::Ticks::new(ended.saturating_sub(began));
        Some(counter.nanoseconds(ticks) * 1e-9)
    };
    (0..repeats).map(span).collect()
}

/// Where all threads wait for the last one, looking all the time: to be woken takes longer than what is measured.
struct Meeting {
    all: usize,
    arrived: AtomicUsize,
    /// Somebody will not come any more.
    is_over: AtomicBool,
}

impl Meeting {
    fn wait(&self) {
        // AcqRel: what a thread did before the meeting is seen by all after it.
        let number = self.arrived.fetch_add(1, Ordering::AcqRel);
        let round_ends = (number / self.all + 1) * self.all;
        // Relaxed: nothing is read that the one who left did.
        while self.arrived.load(Ordering::Acquire) < round_ends && !self.is_over.load(Ordering::Relaxed) {
            // There may be fewer processors at the moment than threads.
            std::thread::yield_now();
        }
    }
}

/// A thread that panics comes to no further meeting: nobody shall wait for it.
struct OverByPanic<'a>(&'a Meeting);

impl Drop for OverByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_slowest_thread_counts() {
        let counter = Counter::calibrate();
        let first = pin::permitted().first().unwrap();
        let parts = vec![(first, 1), (first, 20)];
        let seconds = run(&counter, parts, 2, |milliseconds| {
            std::thread::sleep(Duration::from_millis(*milliseconds));
        });
        let seconds = seconds.unwrap();
        assert_eq!(seconds.len(), 2);
        assert!(seconds.iter().all(|it| (0.019..5.0).contains(it)), "{seconds:?}");
    }

    #[test]
    fn a_thread_that_panics_holds_nobody_up() {
        let first = pin::permitted().first().unwrap();
        let parts = vec![(first, true), (first, false)];
        assert_eq!(run(&Counter::clock(None), parts, 3, |fails| assert!(!*fails)), None);
    }

    #[test]
    fn a_thread_that_cannot_stay_is_no_measurement() {
        assert_eq!(run(&Counter::clock(None), vec![(8000, ())], 1, |()| {}), None);
    }
}
