//! Measures with `fio` how fast the disk below a store in a file is.
//!
//! The file that is read and written is like that of a store: it has no name, its space is reserved, it is written
//! once in order, and it is read past the page cache.

use crate::engine::*;
use largesse_terminal::name;
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::Command;

/// Size of the file in bytes.
const SIZE: u32 = 1 << 30;
const MIB: u32 = 1 << 20;

/// All measurements: a name, `fio`'s mode, the number of bytes of a transfer, and the number of transfers in flight.
/// The first measurement writes the file that the others read.
const CASES: [(&str, &str, u32, u32); 7] = [
    ("first writes", "write", MIB, 8),
    ("sequential reads", "read", MIB, 8),
    ("reads and writes", "rw", MIB, 8),
    ("random reads", "randread", 4096, 1),
    ("random reads", "randread", 4096, 8),
    ("random reads", "randread", 4096, 32),
    ("random reads", "randread", 64 << 10, 8),
];

/// Measures the disk below `folder`, and returns a table. The error says why that is not possible here.
pub(super) fn measure(folder: &Path) -> Result<Outcome> {
    let failed = |why: std::io::Error| format!("{}: {why}", name(folder));
    let file = tempfile::tempfile_in(folder).map_err(failed)?;
    // SAFETY: the descriptor is open, and the others are numbers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, SIZE.into()) } {
        0 => {}
        error => return Err(failed(std::io::Error::from_raw_os_error(error))),
    }
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
    for (name, mode, size, depth) in CASES {
        fio.arg(format!("--name={name}")).arg("--stonewall").arg(format!("--rw={mode}"));
        fio.arg(format!("--bs={size}")).arg(format!("--iodepth={depth}"));
        fio.args(["--runtime=1", "--time_based"].iter().filter(|_| mode == "randread"));
    }
    let output = fio.output().map_err(|_| "not installed (apt install fio)")?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    let by = report["fio version"].as_str().unwrap_or("fio");
    let heads = ["size", "in flight", "MB/s", "a second", "us each"].map(Column::number);
    let mut table = Table::new([Column::text("device", 8)].into_iter().chain(heads));
    let mut objects = Vec::new();
    for (place, (name, _, size, depth)) in CASES.into_iter().enumerate() {
        let both = ["read", "write"].map(|way| &report["jobs"][place][way]);
        let transfers: f64 = both.iter().filter_map(|it| it["total_ios"].as_f64()).sum();
        let seconds = both.iter().filter_map(|it| it["runtime"].as_f64()).fold(0.0, f64::max) / 1e3;
        if transfers == 0.0 || seconds == 0.0 {
            return Err(format!("fio did not measure {name}"));
        }
        let (rate, each) = (transfers / seconds, 1e6 * seconds * f64::from(depth) / transfers);
        let megabytes = rate * f64::from(size) * 1e-6;
        let shown = [megabytes, rate, each].map(|number| format!("{number:.0}"));
        let first = [name.to_owned(), format!("{} KiB", size >> 10), depth.to_string()];
        table.row(first.into_iter().chain(shown));
        objects.push(json!({
            "kind": "device", "bench": "device", "by": by, "case": name, "size": size, "in_flight": depth,
            "megabytes_per_second": megabytes, "microseconds": each,
        }));
    }
    let title = format!("The device of {}, without a program, by {by}", name(folder));
    Ok(Outcome { objects, ..Outcome::new("device", title, table) })
}
