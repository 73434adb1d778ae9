//! Measures bandwidth from one processor of each node to each node, then with 2, 4, 8 … threads.
//!
//! As in the HA8000 guide (Kuroda, 2008), a first pass over new memory (first touch) is reported apart from the passes
//! over resident memory. As in STREAM, bytes are those that the program accesses, without fetches before stores.

use super::memory::{Rung, TestMemory};
use super::{Figure, Limits, REPEATS, cores, team};
use crate::machine::snapshot::{Live, MachineSnapshot};
use largesse_machine::Topology;
use largesse_machine::cycles::Counter;
use serde::Serialize;
use std::hint::black_box;

/// Value of every word before and after a pass.
const BYTES: u64 = 0x7777_7777_7777_7777;
/// Number of bytes between the end of an array and the start of the next: without them the triad was up to 1.6 times
/// slower on one machine.
const APART: usize = 8 << 10;
/// Ratio of the measured bytes to the bytes of all last-level caches, so that no cache holds them.
const TIMES_CACHE: u64 = 4;
const LEAST: u64 = 192 << 20;
const MOST: u64 = 2 << 30;
/// Number of bytes with which a thread measures its own caches, whose bandwidth bounds that of memory.
const INSIDE: usize = 256 << 10;
/// Factor by which a bandwidth may exceed the bound, since the measurement of the bound scatters as well.
const SLACK: f64 = 1.1;

/// The access pattern of a pass, as in the STREAM benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StreamKernel {
    Write,
    Read,
    Copy,
    Triad,
}

impl StreamKernel {
    pub(crate) const ALL: [StreamKernel; 4] =
        [StreamKernel::Write, StreamKernel::Read, StreamKernel::Copy, StreamKernel::Triad];

    pub(crate) fn name(self) -> &'static str {
        match self {
            StreamKernel::Write => "write",
            StreamKernel::Read => "read",
            StreamKernel::Copy => "copy",
            StreamKernel::Triad => "triad",
        }
    }

    /// Returns the number of bytes that a pass over `words` words, divided among the arrays, accesses.
    #[expect(clippy::cast_precision_loss, reason = "bytes of memory")]
    fn bytes(self, words: usize) -> f64 {
        let [.., length] = lengths(words, self.arrays());
        (length * self.arrays() * size_of::<u64>()) as f64
    }

    fn arrays(self) -> usize {
        match self {
            StreamKernel::Write | StreamKernel::Read => 1,
            StreamKernel::Copy => 2,
            StreamKernel::Triad => 3,
        }
    }

    /// Makes one pass over `words`, each of which is [`BYTES`] before and after it.
    fn pass(self, words: &mut [u64]) {
        let [step, length] = lengths(words.len(), self.arrays());
        match self {
            StreamKernel::Write => words.fill(black_box(BYTES)),
            StreamKernel::Read => {
                let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(*word));
                assert_eq!(
                    sum,
                    BYTES.wrapping_mul(words.len() as u64),
                    "memory does not hold what was written"
                );
            }
            StreamKernel::Copy => {
                let (to, from) = words.split_at_mut(step);
                to[..length].copy_from_slice(black_box(&from[..length]));
            }
            StreamKernel::Triad => {
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

/// Returns the distance between the starts of arrays and the length of each, in words.
fn lengths(words: usize, arrays: usize) -> [usize; 2] {
    if arrays == 1 {
        return [words, words];
    }
    let apart = if words * size_of::<u64>() > 64 * APART { APART / size_of::<u64>() } else { 0 };
    let length = words / arrays - apart;
    [length + apart, length]
}

/// The bandwidths in GB/s of one set of threads to one node.
#[derive(Debug, Serialize)]
pub(crate) struct BandwidthRow {
    pub(crate) cpus: Vec<u32>,
    pub(crate) node: u32,
    /// Distance that the firmware reports from the first processor's node (10: local).
    pub(crate) distance: Option<u32>,
    /// Nanoseconds of a cache line's round trip between the first two processors, measured just before the bandwidths:
    /// a hypervisor moves virtual processors all the time, which changes bandwidths.
    pub(crate) round_trip: Option<Figure>,
    pub(crate) first_touch: Option<Figure>,
    pub(crate) kernels: Vec<Option<Figure>>,
    /// The reason why figures are missing.
    pub(crate) why_not: Option<String>,
}

/// All measured bandwidths.
#[derive(Debug, Serialize)]
pub(crate) struct Bandwidth {
    /// Bytes of memory in each measurement.
    pub(crate) bytes: u64,
    /// Bandwidth in GB/s of one thread in its caches, in order of the kernels: the upper bound for a thread in memory.
    pub(crate) inside: Vec<Option<Figure>>,
    pub(crate) kernels: [StreamKernel; 4],
    pub(crate) rows: Vec<BandwidthRow>,
}

/// Returns the processors and the memory node of each row. First, one processor of each node uses the memory of each
/// node. Then 2, 4, 8 … and all processors use the memory of each node, those of that node before others.
pub(crate) fn plan(topology: &Topology, live: &Live) -> Vec<(Vec<u32>, u32)> {
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

/// Measures all rows of `plan` within `limits`, and calls `step` with the name of each row before it.
pub(crate) fn measure(
    seen: &MachineSnapshot,
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
    let inside = StreamKernel::ALL.map(|kernel| inside(&live.counter, first, kernel));
    let mut rows = Vec::new();
    for (cpus, node) in plan {
        step(format!("{} against node {node}", largesse_terminal::say::counted(cpus.len() as u64, "thread")));
        let distance = topology.node_of(cpus[0]).and_then(|from| from.distance_to(*node));
        let mut row = BandwidthRow {
            cpus: cpus.clone(),
            node: *node,
            distance,
            round_trip: None,
            first_touch: None,
            kernels: vec![None; StreamKernel::ALL.len()],
            why_not: None,
        };
        if bytes < caches * 2 {
            row.why_not = Some("less memory may be used than twice the caches".into());
        } else if limits.time_is_up() {
            row.why_not = Some("no time was left".into());
        } else if let Err(why) = fill(&mut row, &live.counter, bytes, &inside) {
            row.why_not = Some(why);
        }
        rows.push(row);
    }
    Bandwidth { bytes, inside: inside.to_vec(), kernels: StreamKernel::ALL, rows }
}

fn fill(
    row: &mut BandwidthRow,
    counter: &Counter,
    bytes: u64,
    inside: &[Option<Figure>; 4],
) -> Result<(), String> {
    let not_there = || format!("memory was not on node {}", row.node);
    let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
    let mut memory = TestMemory::new(bytes, Rung::Thp, Some(row.node))
        .map_err(|error| format!("memory on node {}: {error}", row.node))?;
    if let [first, second, ..] = row.cpus[..] {
        row.round_trip = cores::round_trip(counter, first, second);
    }
    // Writes in caches bound first touch, too.
    let threads = threads(row);
    let limit = |place: usize| inside[place].map_or(f64::INFINITY, |one| one.best * threads * SLACK);
    row.first_touch = rates(counter, &row.cpus, words(&mut memory, bytes), StreamKernel::Write, 1, limit(0));
    let used = part(bytes / size_of::<u64>(), row.cpus.len()) * row.cpus.len() * size_of::<u64>();
    if !memory.is_there(used, Some(row.node)) {
        return Err(not_there());
    }
    for (place, kernel) in StreamKernel::ALL.into_iter().enumerate() {
        row.kernels[place] =
            rates(counter, &row.cpus, words(&mut memory, bytes), kernel, REPEATS, limit(place));
    }
    if row.first_touch.is_none() {
        Err("the threads could not be pinned to their processors".into())
    } else {
        Ok(())
    }
}

fn words(memory: &mut TestMemory, bytes: usize) -> &mut [u64] {
    &mut memory.words()[..bytes / size_of::<u64>()]
}

#[expect(clippy::cast_precision_loss, reason = "a number of threads")]
fn threads(row: &BandwidthRow) -> f64 {
    row.cpus.len() as f64
}

/// Measures the bandwidth in GB/s of one thread on each of `cpus`, on equal parts of `words`.
fn rates(
    counter: &Counter,
    cpus: &[u32],
    words: &mut [u64],
    kernel: StreamKernel,
    repeats: usize,
    limit: f64,
) -> Option<Figure> {
    let each = part(words.len(), cpus.len());
    let parts: Vec<(u32, &mut [u64])> = cpus.iter().copied().zip(words.chunks_exact_mut(each)).collect();
    let bytes = kernel.bytes(each) * f64::from(u32::try_from(cpus.len()).ok()?);
    let seconds = team::run(counter, parts, repeats, |part| kernel.pass(black_box(part)))?;
    Figure::highest(&seconds.iter().map(|seconds| bytes / seconds * 1e-9).collect::<Vec<_>>(), limit)
}

/// Returns the number of words of each thread, a multiple of [`APART`].
fn part(words: usize, threads: usize) -> usize {
    (words / threads) & !(APART / size_of::<u64>() - 1)
}

/// Measures the bandwidth in GB/s of one thread on memory that its caches hold.
fn inside(counter: &Counter, cpu: u32, kernel: StreamKernel) -> Option<Figure> {
    const PASSES: usize = 200;
    let mut memory = TestMemory::new(INSIDE, Rung::Small, None).ok()?;
    let words = &mut memory.words()[..INSIDE / size_of::<u64>()];
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
    fn passes_write_their_arrays() {
        for words in [300, 100_000] {
            for kernel in StreamKernel::ALL {
                let mut memory = vec![BYTES; words];
                let changed = |memory: &[u64]| memory.iter().filter(|word| **word != BYTES).count();
                let [step, length] = lengths(words, kernel.arrays());
                assert!(step * (kernel.arrays() - 1) + length <= words, "{kernel:?} {words}");
                // Passes that write restore the first array.
                if kernel != StreamKernel::Read {
                    memory[..length].fill(1);
                }
                kernel.pass(&mut memory);
                assert_eq!(changed(&memory), 0, "{kernel:?} {words}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "does not hold what was written")]
    fn unwritten_memory_fails_read() {
        StreamKernel::Read.pass(&mut vec![0; 1000]);
    }

    #[test]
    fn bytes_are_counted_as_in_stream() {
        assert_eq!(StreamKernel::Write.bytes(1200), 9600.0);
        assert_eq!(StreamKernel::Copy.bytes(1200), 9600.0);
        assert_eq!(StreamKernel::Triad.bytes(1200), 9600.0);
    }
}
