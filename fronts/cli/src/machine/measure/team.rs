//! Runs pinned threads that begin each repetition together, and times them.

use largesse_machine::cycles::Counter;
use largesse_machine::{Bitmap, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs `work` on each part `repeats` times, by a thread pinned to the processor paired with the part. Returns the
/// seconds of each repetition, from the first start to the last end, or `None` if a thread panicked or was not pinned.
pub(super) fn run<T: Send>(
    counter: &Counter,
    parts: Vec<(u32, T)>,
    repeats: usize,
    work: impl Fn(&mut T) + Sync,
) -> Option<Vec<f64>> {
    let barrier =
        SpinBarrier { all: parts.len(), arrived: AtomicUsize::new(0), is_over: AtomicBool::new(false) };
    let (barrier, work) = (&barrier, &work);
    let one = |cpu: u32, mut part: T| {
        // A thread that cannot be pinned reaches the barrier all the same, since the others wait for it.
        let stays = pin::thread(&[cpu].into_iter().collect::<Bitmap>()).is_ok();
        let mut seen = Vec::new();
        let _over = OverByPanic(barrier);
        for _ in 0..repeats {
            barrier.wait();
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

/// A barrier that polls, since waking a thread takes longer than the measured work.
struct SpinBarrier {
    all: usize,
    arrived: AtomicUsize,
    /// Whether a thread has panicked and will not arrive.
    is_over: AtomicBool,
}

impl SpinBarrier {
    fn wait(&self) {
        // AcqRel: writes before the barrier are visible to all threads after it.
        let number = self.arrived.fetch_add(1, Ordering::AcqRel);
        let round_ends = (number / self.all + 1) * self.all;
        // `is_over` is Relaxed: no data of the panicked thread is read.
        while self.arrived.load(Ordering::Acquire) < round_ends && !self.is_over.load(Ordering::Relaxed) {
            // There may be fewer processors than threads at the moment.
            std::thread::yield_now();
        }
    }
}

/// Releases the other threads from the barrier if this thread panics.
struct OverByPanic<'a>(&'a SpinBarrier);

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
    fn slowest_thread_counts() {
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
    fn panicking_thread_blocks_no_other() {
        let first = pin::permitted().first().unwrap();
        let parts = vec![(first, true), (first, false)];
        assert_eq!(run(&Counter::clock(None), parts, 3, |fails| assert!(!*fails)), None);
    }

    #[test]
    fn unpinned_thread_is_no_measurement() {
        assert_eq!(run(&Counter::clock(None), vec![(8000, ())], 1, |()| {}), None);
    }
}
