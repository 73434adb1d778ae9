//! Measures what the device below a file store can do: by `fio` if it is installed, else by the store's own queue.
//!
//! The file has no name and is reserved like that of a store, written once in order, and read past the page cache.

use crate::engine::*;
use largesse_store::{Broker, Direction, FileStore, PageStore as _, Transfer, TransferQueue};
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Bytes of the file.
const SIZE: usize = 1 << 30;
/// Longest time of a measurement at random places.
const LONGEST: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

/// One measurement: transfers of `size` bytes, `depth` of them in flight, of which `reads` per cent are reads.
struct DeviceCase {
    name: &'static str,
    size: usize,
    depth: usize,
    reads: usize,
    random: bool,
}

/// All measurements. The first one writes the file that the others read.
const CASES: [DeviceCase; 7] = [
    DeviceCase { name: "first writes", size: MIB, depth: 8, reads: 0, random: false },
    DeviceCase { name: "sequential reads", size: MIB, depth: 8, reads: 100, random: false },
    DeviceCase { name: "reads and writes", size: MIB, depth: 8, reads: 50, random: false },
    DeviceCase { name: "random reads", size: 4096, depth: 1, reads: 100, random: true },
    DeviceCase { name: "random reads", size: 4096, depth: 8, reads: 100, random: true },
    DeviceCase { name: "random reads", size: 4096, depth: 32, reads: 100, random: true },
    DeviceCase { name: "random reads", size: 64 << 10, depth: 8, reads: 100, random: true },
];

/// The transfers of one measurement, and its seconds.
struct DeviceRate {
    transfers: f64,
    seconds: f64,
}

/// Measures the device of `folder`, and returns a table.
pub(super) fn measure(folder: &Path) -> Result<Outcome> {
    let (by, rates) = match by_fio(folder) {
        Some(measured) => measured,
        None => ("the store's queue".to_owned(), by_queue(folder)?),
    };
    let title = format!("The device of {}, without a program, by {by}", folder.display());
    let heads = ["size", "in flight", "MB/s", "a second", "us each"].map(Column::number);
    let mut table = Table::new([Column::text("device", 8)].into_iter().chain(heads));
    let mut objects = Vec::new();
    for (case, DeviceRate { transfers, seconds }) in CASES.iter().zip(rates) {
        let (rate, each) = (transfers / seconds, 1e6 * seconds * case.depth as f64 / transfers);
        let megabytes = rate * case.size as f64 * 1e-6;
        let size = format!("{} KiB", case.size >> 10);
        table.row([
            case.name.to_owned(),
            size,
            case.depth.to_string(),
            format!("{megabytes:.0}"),
            format!("{rate:.0}"),
            format!("{each:.0}"),
        ]);
        objects.push(json!({
            "kind": "device", "bench": "device", "by": by, "case": case.name, "size": case.size,
            "in_flight": case.depth, "megabytes_per_second": megabytes, "microseconds": each,
        }));
    }
    Ok(Outcome { objects, ..Outcome::new("device", title, table) })
}

/// Measures with `fio`, and returns its name and version; `None` if it is not installed or fails.
fn by_fio(folder: &Path) -> Option<(String, Vec<DeviceRate>)> {
    let file = tempfile::tempfile_in(folder).ok()?;
    reserve(&file, SIZE as u64).ok()?;
    let mut fio = Command::new("fio");
    fio.args([
        "--output-format=json",
        "--direct=1",
        "--ioengine=io_uring",
        "--invalidate=0",
        "--randrepeat=1",
    ]);
    // The file has no name, so that nothing is left if the bench is killed.
    fio.arg(format!("--filename=/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
    fio.arg(format!("--size={SIZE}"));
    for (place, case) in CASES.iter().enumerate() {
        let mode = match (case.reads, case.random) {
            (0, _) => "write",
            (100, false) => "read",
            (_, true) => "randread",
            _ => "rw",
        };
        fio.arg(format!("--name=case{place}")).arg("--stonewall").arg(format!("--rw={mode}"));
        fio.arg(format!("--bs={}", case.size)).arg(format!("--iodepth={}", case.depth));
        if case.random {
            fio.arg(format!("--runtime={}", LONGEST.as_secs())).arg("--time_based");
        }
    }
    let output = fio.output().ok().filter(|output| output.status.success())?;
    let report: Value = serde_json::from_slice(&output.stdout).ok()?;
    let rate = |job: &Value| {
        let sum =
            |key: &str| job["read"][key].as_f64().unwrap_or(0.0) + job["write"][key].as_f64().unwrap_or(0.0);
        let slowest = job["read"]["runtime"].as_f64()?.max(job["write"]["runtime"].as_f64()?);
        Some(DeviceRate { transfers: sum("total_ios"), seconds: slowest / 1e3 }).filter(|_| slowest > 0.0)
    };
    let rates: Option<Vec<_>> = report["jobs"].as_array()?.iter().map(rate).collect();
    Some((report["fio version"].as_str()?.to_owned(), rates.filter(|rates| rates.len() == CASES.len())?))
}

/// Measures with the queue of a file store.
fn by_queue(folder: &Path) -> Result<Vec<DeviceRate>> {
    let failed = |why: &dyn std::fmt::Debug| format!("the device could not be measured: {why:?}");
    let broker = Broker::start().map_err(|why| failed(&why))?;
    let store = FileStore::create(&folder.join("device"), &broker).map_err(|why| failed(&why))?;
    store.reserve(0, SIZE as u64).map_err(|why| failed(&why))?;
    CASES.iter().map(|case| broker.call(|| transfer(&store, case)).map_err(|why| failed(&why))).collect()
}

/// Keeps the queue full until the file was passed once, or the time is over.
fn transfer(store: &FileStore, case: &DeviceCase) -> Result<DeviceRate, largesse_store::StoreError> {
    let queue = store.open_queue(case.size * case.depth, case.depth)?;
    let mut queue: Box<dyn TransferQueue> = queue.ok_or(largesse_store::StoreError::OneProcess)?;
    let (since, places) = (Instant::now(), SIZE / case.size);
    let (mut started, mut ended, mut failed) = (0, 0, Ok(()));
    let mut free: Vec<usize> = (0..case.depth).collect();
    let mut goes_on = true;
    while goes_on || free.len() < case.depth {
        while let Some(slot) = if goes_on { free.pop() } else { None } {
            // Places at random repeat in every run.
            let place = if case.random { started * 0x9e37_79b1 % places } else { started };
            let reads = started * case.reads % 100 + case.reads >= 100;
            let direction = if reads { Direction::Read } else { Direction::Write };
            let memory = slot * case.size..(slot + 1) * case.size;
            queue.start(Transfer { id: slot, direction, at: (place * case.size) as u64, memory });
            started += 1;
            goes_on = if case.random { since.elapsed() < LONGEST } else { started < places };
        }
        queue.reap(Duration::from_secs(1), &mut |done| {
            free.push(done.id);
            ended += 1;
            failed = std::mem::replace(&mut failed, Ok(())).and(done.result);
        });
    }
    failed?;
    Ok(DeviceRate { transfers: f64::from(ended), seconds: since.elapsed().as_secs_f64() })
}
