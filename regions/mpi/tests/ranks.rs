//! Tests stores on real ranks. Without arguments it starts itself under each installed launcher, with and without
//! shared memory. With arguments it runs as one of the ranks of a launcher.
#![expect(clippy::disallowed_macros, reason = "a test without the usual harness prints")]

use largesse_mpi::{Family, Memory, Mpi, Ranks, serve};
use largesse_store::{QueueBytes, StoreError, StoreProvider};
use queue_checks::{
    DEPTH, PAGES, moves_the_right_bytes, reaps_nothing_when_idle, refuses_more_than_its_depth,
};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "../../store/tests/common/queue.rs"]
mod queue_checks;

const STRIPE: u64 = 2 << 20;
/// Number of stripes that each server lends: 64 MiB.
const STRIPES: u32 = 32;
const RANKS: &str = "3";
const SPEED: &str = "speed";

/// A launcher, with settings that make its library use the network even on one machine.
struct Launcher {
    family: Family,
    words: &'static [&'static str],
    /// Arguments and environment variables of these settings.
    wire: (&'static [&'static str], &'static [(&'static str, &'static str)]),
}

const LAUNCHERS: [Launcher; 2] = [
    Launcher {
        family: Family::OpenMpi,
        words: &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
        wire: (&["--mca", "btl", "tcp,self", "--mca", "pml", "ob1", "--mca", "osc", "pt2pt"], &[]),
    },
    Launcher {
        family: Family::Mpich,
        words: &["mpiexec.hydra"],
        // Over TCP alone any program hangs in MPI_Finalize now and then (MPICH 4.0, UCX 1.13).
        wire: (&[], &[("MPIR_CVAR_NOLOCAL", "1")]),
    },
];

type Case = (&'static str, fn(&Ranks<Mpi>));

/// The test cases by name. The last one prints times: `cargo test --release -p largesse-mpi --test ranks speed`.
const CASES: [Case; 5] = [
    ("eight_threads_keep_every_page", eight_threads),
    ("freed_stripes_are_reused_when_full", full),
    ("stores_do_not_share_bytes", apart),
    ("queues_keep_every_page", queues),
    (SPEED, speed),
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [rank, plugin, case, way] = words.as_slice()
        && rank == "rank"
    {
        be_a_rank(Path::new(plugin), case, way == "near");
        return ExitCode::SUCCESS;
    }
    let wanted = words.iter().find(|word| !word.starts_with('-'));
    let mut failed = 0;
    for launcher in &LAUNCHERS {
        let Some(plugin) = plugin(launcher) else { continue };
        for way in ["near", "far"] {
            for (case, _) in CASES {
                let name = format!("{case} ({}, {way})", launcher.family);
                if wanted.map_or(case != SPEED, |wanted| name.contains(wanted.as_str())) {
                    failed += u32::from(!run(launcher, &plugin, case, way, &name));
                }
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns the plug-in for a launcher that `make plugins` built, if the launcher is installed.
fn plugin(launcher: &Launcher) -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists()).unwrap();
    let plugin = target.join("preload").join(launcher.family.plugin());
    let launched = Command::new(launcher.words[0]).arg("--version").output().is_ok();
    if !plugin.exists() || !launched {
        println!("skipped: {} is not here, or its plug-in was not built (make plugins)", launcher.family);
        return None;
    }
    Some(plugin)
}

fn run(launcher: &Launcher, plugin: &Path, case: &str, way: &str, name: &str) -> bool {
    let mut command = Command::new("timeout");
    command.arg("300").args(launcher.words).args(["-n", RANKS]);
    if way == "far" {
        command.args(launcher.wire.0).envs(launcher.wire.1.iter().copied());
    }
    command.arg(std::env::current_exe().unwrap()).arg("rank").arg(plugin).args([case, way]);
    let ended = command.output().unwrap();
    let well = ended.status.success();
    println!("test {name} ... {}", if well { "ok" } else { "FAILED" });
    if !well || case == SPEED {
        print!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    }
    well
}

fn be_a_rank(plugin: &Path, case: &str, near: bool) {
    let mpi = Arc::new(Mpi::load(plugin).unwrap());
    let world = mpi.join().unwrap();
    assert_eq!(world.ranks.to_string(), RANKS);
    if world.rank == 0 {
        // SAFETY: no bytes.
        unsafe { mpi.lend(0, std::ptr::null_mut()) }.unwrap();
        let ranks = Ranks::meet(Arc::clone(&mpi), world).unwrap();
        assert_eq!(ranks.far(), if near { 0 } else { 2 }, "servers that are reached through MPI");
        let found = CASES.iter().find(|(known, _)| *known == case).unwrap();
        found.1(&ranks);
        let end = Instant::now();
        ranks.stop().unwrap();
        // SAFETY: the cases are over.
        unsafe { mpi.leave() }.unwrap();
        assert!(end.elapsed() < Duration::from_secs(60), "the servers stopped after {:?}", end.elapsed());
    } else {
        let mut memory = Memory::new(STRIPES, || u64::MAX).unwrap();
        // SAFETY: the memory lives until the end of this function.
        unsafe { memory.lend(&mpi) }.unwrap();
        serve(&*mpi, &mut memory).unwrap();
        // SAFETY: the memory is no longer used.
        unsafe { mpi.leave() }.unwrap();
    }
}

/// Returns the contents of a page, which depend on its number and on the round in which it is written.
fn marked(page: u64, round: u64) -> [u8; 4096] {
    let mut bytes = [0; 4096];
    for (at, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(page << 32 | round << 12 | at as u64).to_le_bytes());
    }
    bytes
}

fn eight_threads(ranks: &Ranks<Mpi>) {
    let store = ranks.create().unwrap();
    let each = 1024; // pages
    store.reserve(0, 8 * each * 4096).unwrap();
    let worker = |thread: u64| {
        let mut rounds = vec![0; usize::try_from(each).unwrap()];
        let mut random = thread + 1;
        for step in 1..200 {
            largesse_random::next(&mut random);
            let (first, count) = ((random >> 33) % each, 1 + (random >> 20) % 64);
            let pages = first..(first + count).min(each);
            let place = |page: u64| thread * each + page;
            if random >> 63 == 0 {
                let bytes: Vec<u8> = pages.clone().flat_map(|page| marked(place(page), step)).collect();
                store.write(place(pages.start) * 4096, &bytes).unwrap();
                pages.for_each(|page| rounds[usize::try_from(page).unwrap()] = step);
            } else {
                let mut bytes = vec![0; usize::try_from(pages.end - pages.start).unwrap() * 4096];
                store.read(place(pages.start) * 4096, &mut bytes).unwrap();
                for (page, bytes) in pages.zip(bytes.chunks_exact(4096)) {
                    let round = rounds[usize::try_from(page).unwrap()];
                    assert!(round == 0 || *bytes == marked(place(page), round), "page {}", place(page));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|thread| _ = scope.spawn(move || worker(thread))));
}

fn full(ranks: &Ranks<Mpi>) {
    let all = u64::from(STRIPES) * 2 * STRIPE;
    assert_eq!(ranks.room(), all);
    let (store, other) = (ranks.create().unwrap(), ranks.create().unwrap());
    store.reserve(0, all).unwrap();
    store.write(all - 4096, &marked(1, 1)).unwrap();
    assert_eq!(other.reserve(0, 4096), Err(StoreError::Full { wanted: 4096 }));
    store.discard(0, all / 2);
    other.reserve(0, all / 2).unwrap();
    other.write(0, &marked(2, 2)).unwrap();
    let mut page = [0; 4096];
    store.read(all - 4096, &mut page).unwrap();
    assert_eq!(page, marked(1, 1));
    drop(store);
    other.reserve(all / 2, all / 2).unwrap();
}

fn apart(ranks: &Ranks<Mpi>) {
    let stores = [1, 2, 3].map(|round| (round, ranks.create().unwrap()));
    for (round, store) in &stores {
        store.reserve(0, 2 * STRIPE).unwrap();
        store.write(STRIPE, &marked(7, *round)).unwrap();
    }
    for (round, store) in &stores {
        let mut page = [0; 4096];
        store.read(STRIPE, &mut page).unwrap();
        assert_eq!(page, marked(7, *round));
    }
}

/// Prints the times of transfers and of copies within this process, measured alternately: the median of five each.
fn speed(ranks: &Ranks<Mpi>) {
    let len = 64 << 20;
    let mut here = vec![0_u8; len];
    let store = ranks.create().unwrap();
    store.reserve(0, len as u64).unwrap();
    for size in [4096, 65536, 1 << 20] {
        let mut took: [Vec<Duration>; 4] = Default::default();
        let mut bytes = vec![1; size];
        for _ in 0..6 {
            let places: Vec<usize> = (0..len).step_by(size).take(64).collect();
            let start = Instant::now();
            let mut lap = |number: usize, since: Instant| {
                took[number].push(since.elapsed());
                Instant::now()
            };
            places.iter().for_each(|&at| here[at..at + size].copy_from_slice(&bytes));
            let start = lap(0, start);
            places.iter().for_each(|&at| bytes.copy_from_slice(&here[at..at + size]));
            let start = lap(1, start);
            places.iter().for_each(|&at| store.write(at as u64, &bytes).unwrap());
            let start = lap(2, start);
            places.iter().for_each(|&at| store.read(at as u64, &mut bytes).unwrap());
            lap(3, start);
        }
        let rate = |number: usize| {
            let mut sorted = took[number][1..].to_vec(); // the first round touches memory for the first time
            sorted.sort_unstable();
            64.0 * size as f64 / sorted[2].as_secs_f64() / 1e9
        };
        for (what, here, there) in [("write", 0, 2), ("read ", 1, 3)] {
            let (here, there) = (rate(here), rate(there));
            println!(
                "{size:>8} bytes: {what} {there:6.2} GB/s, within this process {here:6.2}: {:3.0} %",
                100.0 * there / here
            );
        }
    }
}

/// Checks that two threads can transfer pages at once, each by a queue of its own.
fn queues(ranks: &Ranks<Mpi>) {
    let stores = [(); 2].map(|()| ranks.create().unwrap());
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(move || {
                store.reserve(0, 16 * STRIPE).unwrap();
                let memory = QueueBytes::new(PAGES * 4096).unwrap();
                let mut queue = store.open_queue_over(memory, DEPTH).unwrap();
                // In one stripe, over the boundaries of several, and each in another one.
                for step in [4, 170, 900] {
                    moves_the_right_bytes(&mut *queue, step);
                }
                refuses_more_than_its_depth(&mut *queue);
                reaps_nothing_when_idle(&mut *queue);
            });
        }
    });
}
