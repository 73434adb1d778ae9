//! The ladder of page sizes: what one access takes, by how much memory is walked through and on which pages.

use super::memory::{Ground, Rung};
use super::{Figure, Limits, REPEATS, chain};
use largesse_machine::cycles::Counter;
use serde::Serialize;
use std::hint::black_box;

/// From 1 MiB to 4 GiB, each four times the one before.
pub(in crate::machine) const SIZES: [u64; 7] =
    [1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30, 4 << 30];
/// Accesses of one measurement, and as many to begin with that do not count.
const STEPS: usize = 1 << 18;
/// Nothing is nearer than a few cycles.
const LEAST_NS: f64 = 0.1;

/// One kind of page.
#[derive(Debug, Serialize)]
pub(in crate::machine) struct Climb {
    pub(in crate::machine) pages: Rung,
    /// Why there are no figures, or not all.
    pub(in crate::machine) why_not: Option<String>,
    /// The share that is really on large pages, where the kernel can say.
    pub(in crate::machine) large_share: Option<f64>,
    pub(in crate::machine) steps: Vec<Step>,
}

/// One size. Nanoseconds for each access.
#[derive(Debug, Serialize)]
pub(in crate::machine) struct Step {
    pub(in crate::machine) bytes: u64,
    /// Each waits for the one before.
    pub(in crate::machine) chase: Option<Figure>,
    /// None waits.
    pub(in crate::machine) gather: Option<Figure>,
}

/// Climbs on each kind of page; `free` tells the free pages of a pool of this size.
pub(in crate::machine) fn climb(
    counter: &Counter,
    free: &dyn Fn(u64) -> u64,
    limits: &Limits,
    step: &mut dyn FnMut(String),
) -> Vec<Climb> {
    let one = |rung: Rung| {
        let mut climb = Climb { pages: rung, why_not: None, large_share: None, steps: Vec::new() };
        let most = SIZES.into_iter().filter(|size| *size <= limits.memory).max().unwrap_or(0);
        let room = rung.room(most, rung.offer(), free);
        let ground = room.and_then(|bytes| {
            let bytes = SIZES.into_iter().filter(|size| *size <= bytes).max().unwrap_or(0);
            let len = usize::try_from(bytes).map_err(|error| error.to_string())?;
            Ground::new(len, rung, None).map(|ground| (ground, bytes)).map_err(|error| error.to_string())
        });
        match ground {
            Ok((mut ground, most)) => {
                for bytes in SIZES.into_iter().filter(|bytes| *bytes <= most) {
                    step(format!("{} pages, {}", rung.name(), crate::size::size(bytes)));
                    if limits.time_is_up() {
                        climb.why_not = Some("no time was left".into());
                        break;
                    }
                    climb.steps.push(measure(counter, &mut ground, bytes));
                }
                if climb.steps.last().is_some_and(|last| last.bytes == most) {
                    climb.large_share = ground.large_share();
                }
            }
            Err(why) => climb.why_not = Some(why),
        }
        climb
    };
    Rung::ALL.map(one).into()
}

#[expect(clippy::cast_possible_truncation, reason = "64-bit only")]
fn measure(counter: &Counter, ground: &mut Ground, bytes: u64) -> Step {
    let words = &mut ground.words()[..bytes as usize / size_of::<u64>()];
    chain::write(words);
    let words = &*words;
    let mut place = chain::follow(words, 0, STEPS);
    let chase = times(counter, || place = chain::follow(words, black_box(place), STEPS));
    let mut sum = chain::gather(words, STEPS);
    let gather = times(counter, || sum ^= chain::gather(black_box(words), STEPS));
    black_box((place, sum));
    Step { bytes, chase, gather }
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
    fn what_cannot_be_climbed_says_why_and_the_rest_is_measured() {
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
        assert!(said[0] == "4k pages, 1.0 MiB", "{said:?}");
        let late = climb(&Counter::calibrate(), &|_| 0, &Limits::new(4 << 20, 0), &mut |_| {});
        assert_eq!((late[0].why_not.as_deref(), late[0].steps.len()), (Some("no time was left"), 0));
    }
}
