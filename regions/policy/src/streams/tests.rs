use super::*;
use std::collections::HashSet;

/// Simulates the memory of a program, in which nothing is evicted.
#[derive(Default)]
struct SimulatedMemory {
    streams: Streams,
    is_resident: HashSet<usize>,
    /// Number of faults, by access.
    faults: [usize; 2],
    filled: [usize; 2],
}

impl SimulatedMemory {
    fn bring(&mut self, page: usize, access: Access, units: [usize; 2]) {
        let unit = units[access as usize];
        let first = page / unit * unit;
        self.filled[access as usize] +=
            (first..first + unit).filter(|&page| self.is_resident.insert(page)).count();
    }

    fn touch(&mut self, page: usize, units: [usize; 2]) {
        if self.is_resident.contains(&page) {
            return;
        }
        let fault = FaultContext::new(page, units, &(0..usize::MAX), |page| self.is_resident.contains(&page));
        let mut prefetch = Vec::new();
        let access =
            self.streams.on_fault(&fault, 256, |_, _| {}, |pages, access| prefetch.push((pages, access)));
        self.faults[access as usize] += 1;
        for (pages, access) in prefetch {
            pages.for_each(|page| self.bring(page, access, units));
        }
        self.bring(page, access, units);
    }
}

/// Simulates a program that touches `pages` in their order, with transfer units of `units` pages by access.
fn run(pages: impl IntoIterator<Item = usize>, units: [usize; 2]) -> SimulatedMemory {
    let mut memory = SimulatedMemory::default();
    pages.into_iter().for_each(|page| memory.touch(page, units));
    memory
}

/// Returns the share of pages that were prefetched before the program touched them.
fn prefetched(pages: &[usize], unit: usize) -> f64 {
    let faults: usize = run(pages.iter().copied(), [unit; 2]).faults.iter().sum();
    1.0 - faults as f64 / pages.len() as f64
}

/// Returns the pages of rows of `bytes` bytes, 39,000 bytes apart.
fn row_starts(count: usize, bytes: usize) -> Vec<usize> {
    let row = |row: usize| row * 39_000 / 4096..(row * 39_000 + bytes - 1) / 4096 + 1;
    (0..count).flat_map(row).collect()
}

#[test]
fn strides_of_any_length_are_prefetched() {
    let forward: Vec<_> = (0..1000).collect();
    let backward: Vec<_> = (0..1000).rev().collect();
    let wide: Vec<_> = (0..1000).map(|i| i * 37).collect();
    let three: Vec<_> = (0..900).map(|i| i % 3 * 100_000 + i / 3 * 5).collect();
    let uneven: Vec<_> = (0..1000).map(|i| i * 75 / 8).collect();
    for pages in [forward, backward, wide, three, uneven] {
        assert!(prefetched(&pages, 1) > 0.85, "{}", prefetched(&pages, 1));
    }
}

// Seen to fail where a stream is taken to be at the start of its last fault's page.
#[test]
fn fractional_stride_prefetches_no_neighbours() {
    for unit in [1, 2, 4] {
        let strided = row_starts(6000, 8);
        let needed: HashSet<_> = strided.iter().map(|page| page / unit).collect();
        let filled = run(strided, [unit; 2]).is_resident;
        let resident_neighbours = filled.iter().filter(|&page| !needed.contains(&(page / unit))).count();
        let share = resident_neighbours as f64 / filled.len() as f64;
        assert!(share < 0.06, "units of {unit}: {share}");
    }
}

#[test]
fn scan_is_prefetched_from_any_start() {
    for (unit, first) in [(1, 0), (4, 1), (4, 3), (16, 5)] {
        let backward = (first..first + 3000).rev();
        for pages in [(first..first + 3000).collect::<Vec<_>>(), backward.collect()] {
            let share = prefetched(&pages, unit);
            assert!(share > 1.0 - 0.15 / unit as f64, "units of {unit} from {first}: {share}");
        }
    }
}

// Seen to fail where a page near the next unit is taken to be in it.
#[test]
fn rows_are_strided_and_scans_dense() {
    for dense in [1, 4, 8, 16, 64] {
        let (pages, needed) =
            (row_starts(3000, 600), row_starts(3000, 600).into_iter().collect::<HashSet<_>>().len());
        let SimulatedMemory { faults: [_, faults], filled: [lost, filled], .. } = run(pages, [dense, 1]);
        assert!(lost + filled < needed * 23 / 20, "units of {dense}: {lost} and {filled} of {needed} needed");
        assert!(faults < needed / 10, "units of {dense}: {faults} faults");
        for pages in [(5..9000).collect::<Vec<_>>(), (5..9000).rev().collect()] {
            let SimulatedMemory { filled: [_, strided], .. } = run(pages, [dense, 1]);
            assert_eq!(strided, 0, "units of {dense}");
        }
    }
}

// Seen to fail where a row is a single page, and where its start within the page is not estimated.
#[test]
fn row_across_two_pages_is_prefetched_whole() {
    let needed: HashSet<_> = row_starts(6000, 800).into_iter().collect();
    let memory = run(row_starts(6000, 800), [4, 1]);
    let faults: usize = memory.faults.iter().sum();
    assert!(faults < needed.len() / 20, "{faults} of {}", needed.len());
    let filled: usize = memory.filled.iter().sum();
    assert!(filled < needed.len() * 11 / 10, "{filled} of {}", needed.len());
}

// Seen to fail without regard to the pages next to rows.
#[test]
fn wide_rows_are_dense() {
    let wide = (0..600).flat_map(|row| row * 618..row * 618 + 9);
    let SimulatedMemory { filled: [dense, strided], .. } = run(wide, [4, 1]);
    assert!(dense > 20 * strided, "{dense} and {strided}");
}

// Seen to fail where a stream is only recognised as far as it was prefetched.
#[test]
fn stream_is_recognised_across_resident_rows() {
    let mut memory = run(row_starts(300, 8), [16, 1]);
    let strided = memory.faults[1];
    let mut random = 12345_u64;
    let mut seldom = || {
        largesse_random::next(&mut random);
        (random >> 60) == 0
    };
    let missing: Vec<_> = row_starts(9000, 8).into_iter().skip(300).filter(|_| seldom()).collect();
    // No prefetched page is filled, since it would let the next ones be recognised.
    for &page in &missing {
        memory.streams.streams.iter_mut().for_each(|stream| stream.prefetched = 0);
        let fault =
            FaultContext { page, resident_neighbours: [false; 2], scanned: [false; 2], units: [16, 1] };
        memory.faults[memory.streams.on_fault(&fault, 256, |_, _| {}, |_, _| {}) as usize] += 1;
    }
    let known = memory.faults[1] - strided;
    assert!(known * 10 > missing.len() * 9, "{known} of {}", missing.len());
}

// Seen to fail where parallel scans are no stream (12,000 faults), and where they are taken for rows.
#[test]
fn parallel_scans_are_prefetched_and_dense() {
    let columns = (0..120).flat_map(|column| (0..400).map(move |row| row * 125 + column));
    let memory = run(columns, [4, 1]);
    let [filled, strided] = memory.filled;
    assert!(filled > 46_000 && strided < 1000, "{filled} and {strided}");
    assert!(memory.faults[0] < 2000, "{:?}", memory.faults);
}

#[test]
fn random_faults_prefetch_nothing() {
    let mut random = 12345_u64;
    let mut next = || {
        largesse_random::next(&mut random);
        (random >> 40) as usize
    };
    let memory = run((0..10_000).map(|_| next()), [1; 2]);
    assert!(memory.is_resident.len() < 10_100, "{}", memory.is_resident.len());
}

#[test]
fn prefetch_respects_its_limit() {
    let mut streams = Streams::new();
    for page in (0..40).map(|i| i * 64) {
        let mut pages = 0;
        let fault =
            FaultContext { page, resident_neighbours: [true, false], scanned: [true, false], units: [64; 2] };
        streams.on_fault(&fault, 128, |_, _| {}, |_, _| pages += 64);
        assert!(pages <= 128);
    }
}
