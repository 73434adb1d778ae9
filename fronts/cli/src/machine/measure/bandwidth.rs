//! Bandwidth: each processor against each node, then more and more threads.
//!
//! As in Kuroda's article: a pass over new memory (first touch), shown apart, then passes over memory that is there. Bytes
//! are counted as STREAM counts them: those that the program names, not those that a cache fetches before a store.

use super::memory::{Ground, Rung};
use super::{Figure, Limits, REPEATS, cores, team};
use crate::machine::snapshot::{Live, Seen};
use largesse_machine::Topology;
use largesse_machine::cycles::Counter;
use serde::Serialize;
use std::hint::black_box;

/// What every word is before a pass, and what a pass writes.
const BYTES: u64 = 0x7777_7777_7777_7777;
/// Arrays of a triad are not at equal offsets of a page: x1.6 between the best and the worst on one machine.
const APART: usize = 8 << 10;
/// Memory is what no cache holds: so many times all last caches together.
const TIMES_CACHE: u64 = 4;
const LEAST: u64 = 192 << 20;
const MOST: u64 = 2 << 30;
/// What a thread measures inside its own caches, the bound of what memory can do.
const INSIDE: usize = 256 << 10;
/// Measurements of the bound scatter too.
const SLACK: f64 = 1.1;

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::machine) enum Kernel {
    Write,
    Read,
    Copy,
    Triad,
}

impl Kernel {
    pub(in crate::machine) const ALL: [Kernel; 4] =
        [Kernel::Write, Kernel::Read, Kernel::Copy, Kernel::Triad];

    pub(in crate::machine) fn name(self) -> &'static str {
        match self {
            Kernel::Write => "write",
            Kernel::Read => "read",
            Kernel::Copy => "copy",
            Kernel::Triad => "triad",
        }
    }

    /// Of `words` of one thread, which are divided among the arrays.
    #[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
    fn bytes(self, words: usize) -> f64 {
        let [.., length] = lengths(words, self.arrays());
        (length * self.arrays() * size_of::<u64>()) as f64
    }

    fn arrays(self) -> usize {
        match self {
            Kernel::Write | Kernel::Read => 1,
            Kernel::Copy => 2,
            Kernel::Triad => 3,
        }
    }

    /// One pass. Memory holds [`BYTES`] before and after.
    fn pass(self, words: &mut [u64]) {
        let [step, length] = lengths(words.len(), self.arrays());
        match self {
            Kernel::Write => words.fill(black_box(BYTES)),
            Kernel::Read => {
                let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
                assert_eq!(
                    sum,
                    BYTES.wrapping_mul(words.len() as u64),
                    "memory does not hold what was written"
                );
            }
            Kernel::Copy => {
                let (to, from) = words.split_at_mut(step);
                to[..length].copy_from_slice(black_box(&from[..length]));
            }
            Kernel::Triad => {
                let (a, rest) = words.split_at_mut(step);
                let (b, c) = rest.split_at(step);
                let factor = black_box(0.0);
                for ((a, b), c) in a[..length].iter_mut().zip(&b[..length]).zip(&c[..length]) {
                    *a = (f64::from_bits(*b) + factor * f64::from_bits(*c)).to_bits();
                }
            }
        }
    }
}

/// How far arrays are apart, and how long each is, in words.
fn lengths(words: usize, arrays: usize) -> [usize; 2] {
    if arrays == 1 {
        return [words, words];
    }
    let apart = if words * size_of::<u64>() > 64 * APART { APART / size_of::<u64>() } else { 0 };
    let length = words / arrays - apart;
    [length + apart, length]
}

/// GB/s of everything, for one set of threads and one node.
#[derive(Debug, Serialize)]
pub(in crate::machine) struct Row {
    pub(in crate::machine) cpus: Vec<u32>,
    pub(in crate::machine) node: u32,
    /// As the firmware tells it, from the first processor's node.
    pub(in crate::machine) distance: Option<u32>,
    /// Nanoseconds of a cache line between the first two processors, just before: where a virtual machine's processors
    /// are is decided anew all the time, and bandwidths go with it.
    pub(in crate::machine) round_trip: Option<Figure>,
    pub(in crate::machine) first_touch: Option<Figure>,
    pub(in crate::machine) kernels: Vec<Option<Figure>>,
    /// Why there are no figures.
    pub(in crate::machine) why_not: Option<String>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(in crate::machine) struct Bandwidth {
    /// Of each measurement.
    pub(in crate::machine) bytes: u64,
    /// GB/s of one thread inside its caches, in order of the kernels: what no thread can exceed in memory.
    pub(in crate::machine) inside: Vec<Option<Figure>>,
    pub(in crate::machine) kernels: [Kernel; 4],
    pub(in crate::machine) rows: Vec<Row>,
}

/// Which rows there are: one processor of each node against each node, then 2, 4, 8 … and all processors, their nodes first.
pub(in crate::machine) fn plan(topology: &Topology, live: &Live) -> Vec<(Vec<u32>, u32)> {
    let permitted = live.nodes.clone().unwrap_or_else(|| topology.nodes_with_memory());
    let memory: Vec<u32> = topology.nodes_with_memory().and(&permitted).iter().collect();
    let local =
        |node: u32| topology.nodes.iter().find(|it| it.number == node).map(|it| it.cpus.and(&live.pinned));
    let mut rows: Vec<(Vec<u32>, u32)> = Vec::new();
    for node in &topology.nodes {
        let Some(cpu) = node.cpus.and(&live.pinned).first() else { continue };
        rows.extend(memory.iter().map(|to| (vec![cpu], *to)));
    }
    for &node in &memory {
        let near = local(node).unwrap_or_default();
        let far = live.pinned.without(&near);
        let all: Vec<u32> = near.iter().chain(far.iter()).collect();
        let doubled =
            std::iter::successors(Some(2), |count| Some(count * 2)).take_while(|count| *count < all.len());
        let counts = doubled.chain((all.len() > 1).then_some(all.len()));
        rows.extend(counts.map(|count| (all[..count].to_vec(), node)));
    }
    rows
}

/// Measures a plan.
pub(in crate::machine) fn measure(
    seen: &Seen,
    live: &Live,
    plan: &[(Vec<u32>, u32)],
    limits: &Limits,
    step: &mut dyn FnMut(String),
) -> Bandwidth {
    let topology = &seen.topology;
    let caches = topology.last_cache().map_or(0, |last| {
        topology.caches.iter().filter(|cache| cache.level == last.level).map(|cache| cache.size).sum::<u64>()
    });
    let bytes = (caches * TIMES_CACHE).clamp(LEAST, MOST).min(limits.memory);
    let first = live.pinned.first().unwrap_or(0);
    let inside = Kernel::ALL.map(|kernel| inside(&live.counter, first, kernel));
    let mut rows = Vec::new();
    for (cpus, node) in plan {
        step(format!("{} against node {node}", crate::say::counted(cpus.len() as u64, "thread")));
        let distance = topology.node_of(cpus[0]).and_then(|from| from.distance_to(*node));
        let mut row = Row {
            cpus: cpus.clone(),
            node: *node,
            distance,
            round_trip: None,
            first_touch: None,
            kernels: vec![None; Kernel::ALL.len()],
            why_not: None,
        };
        if bytes < caches * 2 {
            row.why_not = Some("less memory may be used than two times the caches".into());
        } else if limits.time_is_up() {
            row.why_not = Some("no time was left".into());
        } else if let Err(why) = fill(&mut row, &live.counter, bytes, &inside) {
            row.why_not = Some(why);
        }
        rows.push(row);
    }
    Bandwidth { bytes, inside: inside.to_vec(), kernels: Kernel::ALL, rows }
}

fn fill(row: &mut Row, counter: &Counter, bytes: u64, inside: &[Option<Figure>; 4]) -> Result<(), String> {
    let not_there = || format!("memory was not on node {}", row.node);
    let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let mut ground = Ground::new(bytes, Rung::Thp, Some(row.node))
        .map_err(|error| format!("memory on node {}: {error}", row.node))?;
    if let [first, second, ..] = row.cpus[..] {
        row.round_trip = cores::round_trip(counter, first, second);
    }
    // The bound of first touch is that of writing.
    let threads = threads(row);
    let limit = |place: usize| inside[place].map_or(f64::INFINITY, |one| one.best * threads * SLACK);
    row.first_touch = rates(counter, &row.cpus, words(&mut ground, bytes), Kernel::Write, 1, limit(0));
    let used = part(bytes / size_of::<u64>(), row.cpus.len()) * row.cpus.len() * size_of::<u64>();
    if !ground.is_there(used, Some(row.node)) {
        return Err(not_there());
    }
    for (place, kernel) in Kernel::ALL.into_iter().enumerate() {
        row.kernels[place] =
            rates(counter, &row.cpus, words(&mut ground, bytes), kernel, REPEATS, limit(place));
    }
    if row.first_touch.is_none() {
        Err("the threads could not stay on their processors".into())
    } else {
        Ok(())
    }
}

fn words(ground: &mut Ground, bytes: usize) -> &mut [u64] {
    &mut ground.words()[..bytes / size_of::<u64>()]
}

#[expect(clippy::cast_precision_loss, reason = "a number of threads")]
fn threads(row: &Row) -> f64 {
    row.cpus.len() as f64
}

/// GB/s of these threads on equal parts of `words`.
fn rates(
    counter: &Counter,
    cpus: &[u32],
    words: &mut [u64],
    kernel: Kernel,
    repeats: usize,
    limit: f64,
) -> Option<Figure> {
    let each = part(words.len(), cpus.len());
    let parts: Vec<(u32, &mut [u64])> = cpus.iter().copied().zip(words.chunks_exact_mut(each)).collect();
    let bytes = kernel.bytes(each) * f64::from(u32::try_from(cpus.len()).ok()?);
    let seconds = team::run(counter, parts, repeats, |part| kernel.pass(black_box(part)))?;
    Figure::highest(&seconds.iter().map(|seconds| bytes / seconds * 1e-9).collect::<Vec<_>>(), limit)
}

/// Words of each thread: whole pages.
fn part(words: usize, threads: usize) -> usize {
    (words / threads) & !(APART / size_of::<u64>() - 1)
}

/// GB/s of one thread on memory that its caches hold.
fn inside(counter: &Counter, cpu: u32, kernel: Kernel) -> Option<Figure> {
    const PASSES: usize = 200;
    let mut ground = Ground::new(INSIDE, Rung::Small, None).ok()?;
    let words = &mut ground.words()[..INSIDE / size_of::<u64>()];
    words.fill(BYTES);
    let bytes = kernel.bytes(words.len()) * f64::from(u32::try_from(PASSES).ok()?);
    let seconds = team::run(counter, vec![(cpu, words)], REPEATS, |part| {
        (0..PASSES).for_each(|_| kernel.pass(black_box(part)));
    })?;
    Figure::highest(&seconds.iter().map(|seconds| bytes / seconds * 1e-9).collect::<Vec<_>>(), f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_does_what_its_name_says_and_leaves_what_was_there() {
        for words in [300, 100_000] {
            for kernel in Kernel::ALL {
                let mut memory = vec![BYTES; words];
                let changed = |memory: &[u64]| memory.iter().filter(|word| **word != BYTES).count();
                let [step, length] = lengths(words, kernel.arrays());
                assert!(step * (kernel.arrays() - 1) + length <= words, "{kernel:?} {words}");
                // Spoil the first array: all but a read put it right.
                if kernel != Kernel::Read {
                    memory[..length].fill(1);
                }
                kernel.pass(&mut memory);
                assert_eq!(changed(&memory), 0, "{kernel:?} {words}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "does not hold what was written")]
    fn a_read_of_memory_that_was_never_written_is_noticed() {
        Kernel::Read.pass(&mut vec![0; 1000]);
    }

    #[test]
    fn bytes_are_counted_as_stream_does() {
        assert_eq!(Kernel::Write.bytes(1200), 9600.0);
        assert_eq!(Kernel::Copy.bytes(1200), 9600.0);
        assert_eq!(Kernel::Triad.bytes(1200), 9600.0);
    }
}
