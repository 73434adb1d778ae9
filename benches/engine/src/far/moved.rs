//! Reads what a run moved to its store and back, as the pager or the kernel counted it.

use crate::engine::{Run, number};
use serde_json::{Value, json};
use std::path::Path;

/// Bytes of a page.
const PAGE: u64 = 4096;
const VMSTAT: &str = "/proc/vmstat";

/// The transfers of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    /// Largest number of resident bytes: of the data, or, of a peer, of the whole program.
    pub(super) resident: u64,
    /// Bytes read and written.
    pub(super) read: u64,
    pub(super) written: u64,
    /// Mean bytes of a read.
    pub(super) unit: u64,
    /// Share of the filled pages for which no thread faulted.
    pub(super) before_touch: f64,
}

impl Moved {
    /// Returns the transfers of a run; `None` if they were not counted.
    pub(super) fn of(run: &Run) -> Option<Moved> {
        let share = |faults: u64, pages: u64| 1.0 - (faults as f64 / pages.max(1) as f64).min(1.0);
        if let Some(swap) = run.more.get("swap") {
            let count = |name: &str| swap[name].as_u64();
            let (pages, out) = (count("in")?, count("out")?);
            return Some(Moved {
                resident: run.peak.bytes(),
                read: pages * PAGE,
                written: out * PAGE,
                unit: PAGE,
                before_touch: share(count("major_faults")?, pages),
            });
        }
        let far = run.more.get("far")?;
        let count = |name: &str| far[name].as_u64();
        let (read, written) = (count("bytes_in")?, count("bytes_out")?);
        let reads = count("reads").filter(|reads| *reads > 0);
        let faults = count("faults")?.saturating_sub(count("write_faults")?);
        Some(Moved {
            resident: count("resident_bytes")?,
            read,
            written,
            unit: reads.map(|reads| read / reads).or(count("set_bytes"))?,
            before_touch: share(faults, count("fills")? + count("zero_fills")?),
        })
    }
}

/// Returns the pages that the machine has swapped in and out.
pub(super) fn swapped() -> [u64; 2] {
    ["pswpin", "pswpout"].map(|key| number(Path::new(VMSTAT), key))
}

/// Returns the pages that were swapped in and out since.
pub(super) fn since(before: &[u64; 2]) -> Value {
    let [into, out] = swapped();
    json!({ "in": into - before[0], "out": out - before[1] })
}
