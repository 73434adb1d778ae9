//! Measures the latency of an access by the size of the memory and the kind of page.

use super::memory::{Rung, TestMemory};
use super::{Figure, Limits, REPEATS, chain};
use largesse_machine::cycles::Counter;
use serde::Serialize;
use std::hint::black_box;

/// Bytes of memory of each step, from 1 MiB to 4 GiB, each four times the one before.
pub(crate) const SIZES: [u64; 7] = [1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30];
/// Number of accesses of a measurement, after as many to warm up.
const STEPS: usize = 1 << 18;
/// Nanoseconds below which a latency is impossible.
const LEAST_NS: f64 = 0.1;

/// The measurements on one kind of page.
#[derive(Debug, Serialize)]
pub(crate) struct Ladder {
    pub(crate) pages: Rung,
    /// The reason why figures are missing.
    pub(crate) why_not: Option<String>,
    /// Share of the memory that is on large pages, if the kernel can tell.
    pub(crate) large_share: Option<f64>,
    pub(crate) steps: Vec<LadderStep>,
}

/// The measurements for one size of memory.
#[derive(Debug, Serialize)]
pub(crate) struct LadderStep {
    pub(crate) bytes: u64,
    /// Nanoseconds of an access whose address depends on the access before.
    pub(crate) chase: Option<Figure>,
    /// Nanoseconds of an access that depends on no other.
    pub(crate) gather: Option<Figure>,
}

/// Measures all sizes on each kind of page. `free` returns the number of free pages of a hugetlb pool, given the bytes
/// of a page.
pub(crate) fn climb(
    counter: &Counter,
    free: &dyn Fn(u64) -> u64,
    limits: &Limits,
    step: &mut dyn FnMut(String),
) -> Vec<Ladder> {
    let one = |rung: Rung| {
        let mut climb = Ladder { pages: rung, why_not: None, large_share: None, steps: Vec::new() };
        let most = SIZES.into_iter().filter(|size| *size <= limits.memory).max().unwrap_or(0);
        let room = rung.room(most, rung.offer(), free);
        let memory = room.and_then(|bytes| {
            let bytes = SIZES.into_iter().filter(|size| *size <= bytes).max().unwrap_or(0);
            let len = usize::try_from(bytes).map_err(|error| error.to_string())?;
            TestMemory::new(len, rung, None).map(|memory| (memory, bytes)).map_err(|error| error.to_string())
        });
        match memory {
            Ok((mut memory, most)) => {
                for bytes in SIZES.into_iter().filter(|bytes| *bytes <= most) {
                    step(format!("{} pages, {}", rung.name(), largesse_terminal::size(bytes)));
                    if limits.time_is_up() {
                        climb.why_not = Some("no time was left".into());
                        break;
                    }
                    climb.steps.push(measure(counter, &mut memory, bytes));
                }
                if climb.steps.last().is_some_and(|last| last.bytes == most) {
                    climb.large_share = memory.large_share();
                }
            }
            Err(why) => climb.why_not = Some(why),
        }
        climb
    };
    Rung::ALL.map(one).into()
}

#[expect(clippy::cast_possible_truncation, reason = "64-bit only")]
fn measure(counter: &Counter, memory: &mut TestMemory, bytes: u64) -> LadderStep {
    let words = &mut memory.words()[..bytes as usize / size_of::<u64>()];
    chain::write(words);
    let words = &*words;
    let mut place = chain::follow(words, 0, STEPS);
    let chase = times(counter, || place = chain::follow(words, black_box(place), STEPS));
    let mut sum = chain::gather(words, STEPS);
    let gather = times(counter, || sum ^= chain::gather(black_box(words), STEPS));
    black_box((place, sum));
    LadderStep { bytes, chase, gather }
}

#[expect(clippy::cast_precision_loss, reason = "a number of steps")]
fn times(counter: &Counter, mut work: impl FnMut()) -> Option<Figure> {
    let one = |_| {
        let watch = counter.start();
        work();
        counter.nanoseconds(watch.stop()) / STEPS as f64
    };
    Figure::lowest(&(0..REPEATS).map(one).collect::<Vec<_>>(), LEAST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_pages_do_not_stop_measurement() {
        let limits = Limits::new(4 << 20, 60);
        let mut said = Vec::new();
        let climbs = climb(&Counter::calibrate(), &|_| 0, &limits, &mut |what| said.push(what));
        assert_eq!(climbs.len(), Rung::ALL.len());
        let small = &climbs[0];
        assert_eq!(small.steps.iter().map(|step| step.bytes).collect::<Vec<_>>(), [1 << 20, 4 << 20]);
        assert!(small.steps.iter().all(|step| step.chase.is_some_and(|it| !it.impossible)), "{small:?}");
        assert_eq!(
            climbs[3].why_not.as_deref(),
            Some("the pool of 2 MiB pages is empty (/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages)")
        );
        assert!(said[0] == "4k pages, 1 MiB", "{said:?}");
        let late = climb(&Counter::calibrate(), &|_| 0, &Limits::new(4 << 20, 0), &mut |_| {});
        assert_eq!((late[0].why_not.as_deref(), late[0].steps.len()), (Some("no time was left"), 0));
    }
}
