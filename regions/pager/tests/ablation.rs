//! Compares each policy with its baseline, by the faults and the bytes that recorded accesses cost.

mod common;

use common::{PAGE, Simulated, SimulatedFault, TestStore, make_with};
use largesse_pager::{Buffer, Count, Touch};
use largesse_policy::replacement::ReplacementQueue;
use largesse_policy::streams::Streams;
use largesse_policy::transfer::TransferSize;
use largesse_policy::{MAX_TRANSFER, Policies};
use std::sync::Arc;

/// Number of pages of far memory.
const PAGES: usize = 1024;
/// Number of pages of local memory.
const LOCAL: usize = 256;

/// The columns of the table: the baselines alone, one policy in the place of its baseline, and all policies.
const SETTINGS: [&str; 5] = ["baseline", "replacement", "prefetch", "size", "all"];

fn policies(setting: &str) -> Policies {
    let baseline = Policies::baseline(1);
    match setting {
        "baseline" => baseline,
        "replacement" => Policies { replacement: Box::new(ReplacementQueue::new()), ..baseline },
        "prefetch" => Policies { prefetch: Box::new(Streams::new()), ..baseline },
        "size" => Policies { size: TransferSize::Auto, ..baseline },
        _ => Policies::new(TransferSize::Auto, true),
    }
}

/// The rows of the table: the pages that a program reads, in their order.
fn patterns() -> [(&'static str, Vec<usize>); 4] {
    let mut random = 12345;
    [
        ("sequential", [0..PAGES, 0..PAGES].into_iter().flatten().collect()),
        ("strided", (0..4).flat_map(|column| (column..PAGES).step_by(8)).collect()),
        ("random", (0..4 * PAGES).map(|_| next(&mut random) % PAGES).collect()),
        ("cyclic sweep", (0..20).flat_map(|_| 0..LOCAL * 5 / 4).collect()),
    ]
}

/// Returns the next number of a linear congruential generator (Knuth's MMIX), and stores its state in `random`.
fn next(random: &mut u64) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 40) as usize
}

/// Writes to all pages, then reads `pages` in their order. Returns the number of faults of these reads, and the number
/// of bytes that they move.
fn run(policies: Policies, pages: &[usize]) -> [u64; 2] {
    let store = Arc::new(TestStore::new(SimulatedFault::None));
    let pager = make_with(Simulated::new(PAGES), PAGES, LOCAL, policies, &store);
    let mut buffer = Buffer::new(MAX_TRANSFER).unwrap();
    let mut serve = |touch| {
        _ = pager.serve(touch, &mut buffer).unwrap();
        while pager.idle(&mut buffer).unwrap() || pager.check_untouched().unwrap() {} // the program runs
    };
    for page in 0..PAGES {
        while !pager.kernel().try_write(page, 0, page as u64) {
            serve(Touch { page, write: true });
        }
    }
    let counts = || {
        let [faults, bytes_in, bytes_out] =
            [Count::Faults, Count::BytesIn, Count::BytesOut].map(|count| pager.counters.get(count));
        [faults, bytes_in + bytes_out]
    };
    let before = counts();
    for &page in pages {
        while !pager.kernel().is_here(page) {
            serve(Touch { page, write: false });
        }
        assert_eq!(pager.kernel().word(page, 0, None), page as u64);
    }
    let after = counts();
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
#[expect(clippy::disallowed_macros, reason = "the table is for whoever changes a policy")]
fn each_policy_beats_its_baseline() {
    eprintln!("{:14}{}", "faults, KiB", SETTINGS.map(|setting| format!("{setting:>16}")).concat());
    for (pattern, pages) in patterns() {
        let cells = SETTINGS.map(|setting| run(policies(setting), &pages));
        let cell = |[faults, bytes]: [u64; 2]| format!("{faults:>9}{:>7}", bytes / 1024);
        eprintln!("{pattern:14}{}", cells.map(cell).concat());
        let [baseline, replacement, prefetch, size, all] = cells;
        match pattern {
            "cyclic sweep" => assert!(replacement[1] < baseline[1], "replacement moves more bytes"),
            "sequential" => {
                assert!(prefetch[0] < baseline[0], "prefetch has more faults");
                assert!(size[0] < baseline[0], "the chosen transfer size has more faults");
            }
            "strided" => assert!(prefetch[0] < baseline[0], "prefetch has more faults"),
            // There is nothing to find: no policy may cost much.
            _ => {
                assert!(replacement[1] <= baseline[1] * 11 / 10, "replacement moves many more bytes");
                assert!(prefetch[1] <= baseline[1] * 5 / 4, "prefetch guesses at random");
                assert!(prefetch[0] <= baseline[0] * 11 / 10, "prefetches evict pages in use");
            }
        }
        assert!(all[0] <= baseline[0] * 11 / 10, "all policies together have more faults: {pattern}");
        assert!(baseline[1] >= (PAGE * LOCAL) as u64, "the pages fit: {pattern}");
    }
}
