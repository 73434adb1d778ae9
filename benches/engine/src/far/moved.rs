//! Shows how many bytes the last runs read from their stores and wrote to them, as the pager or the kernel counted
//! them.

use super::least::Trace;
use super::plan::{FarColumn, Way};
use crate::engine::*;
use largesse_terminal::table::{Column, Table};
use serde_json::{Value, json};

/// Size in bytes of a page of Linux swap.
const PAGE: u64 = 4096;

/// One cell of the main table with its row, its column and its last run.
pub(super) struct Place<'a> {
    pub(super) way: &'a Way,
    pub(super) column: FarColumn,
    pub(super) cell: Cell,
    pub(super) last: Option<&'a Run>,
}

/// How much one run read from its store and wrote to it.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// Largest number of resident bytes: those of the program's data or, under a peer, those of the whole program.
    resident: u64,
    /// Number of bytes read from the store. (`written` is that of bytes written to it.)
    read: u64,
    written: u64,
    /// Mean number of bytes of a read.
    unit: u64,
    /// Share (0 to 1) of the filled pages for which no thread faulted.
    before_touch: f64,
}

impl Moved {
    /// Returns the transfers of a run, or `None` if they were not counted.
    fn of(run: &Run) -> Option<Moved> {
        let share = |faults: u64, pages: u64| 1.0 - (faults as f64 / pages.max(1) as f64).min(1.0);
        let count = |of: &str, name: &str| run.more.get(of)?[name].as_u64();
        if let Some(pages) = count("swap", "in") {
            return Some(Moved {
                resident: run.peak.bytes(),
                read: pages * PAGE,
                written: count("swap", "out")? * PAGE,
                unit: PAGE,
                before_touch: share(count("swap", "major_faults")?, pages),
            });
        }
        let far = |name| count("far", name);
        let (read, reads) = (far("bytes_in")?, far("reads").filter(|reads| *reads > 0));
        Some(Moved {
            resident: far("resident_bytes")?,
            read,
            written: far("bytes_out")?,
            unit: reads.map(|reads| read / reads).or(far("set_bytes"))?,
            before_touch: share(
                far("faults")?.saturating_sub(far("write_faults")?),
                far("fills")? + far("zero_fills")?,
            ),
        })
    }
}

/// Returns the row for the last run of a cell of the main table, and the row's keys for JSON. Returns `None` if the
/// transfers were not counted. `data` is the number of bytes of the program's data.
pub(super) fn row(place: &Place<'_>, data: u64, trace: Option<&Trace>) -> Option<(Vec<String>, Value)> {
    let (moved, Place { way, column, .. }) = (Moved::of(place.last?)?, place);
    let resident = (moved.resident as f64 / data as f64).min(1.0);
    let mib = |bytes: u64| format!("{:.0} MiB", mib(bytes));
    let mut cells = vec![
        way.name().to_owned(),
        format!("{}%", column.percent),
        format!("{:.0}%", 100.0 * resident),
        mib(moved.read),
        mib(moved.written),
        format!("{:.0} KiB", moved.unit as f64 / 1024.0),
        format!("{:.0}%", 100.0 * moved.before_touch),
    ];
    let mut keys = json!({
        "resident": resident, "bytes_read": moved.read, "bytes_written": moved.written,
        "bytes_each": moved.unit, "before_touch": moved.before_touch,
    });
    if let Some(trace) = trace {
        // The largest power of two that is not above the mean transfer.
        let unit = 1 << moved.unit.max(PAGE).ilog2();
        let is_peer = matches!(way, Way::Peer(_));
        let memory = column.limit.filter(|_| is_peer).unwrap_or(column.local);
        let least = trace.least(unit, memory);
        let ratio = (least > 0).then(|| moved.read as f64 / least as f64);
        cells.push(ratio.map_or("-".into(), |ratio| format!("{ratio:.2}")));
        keys = merged(keys, &json!({ "least_bytes": least, "least_unit": unit, "to_least": ratio }));
    }
    Some((cells, keys))
}

/// Returns the table of what was read and written, with its title, or `None` if there are no rows. The longest rows end
/// with the comparison with a trace.
pub(super) fn table(rows: Vec<Vec<String>>) -> Option<(String, Table)> {
    let heads = ["local", "resident", "read", "written", "each", "before touch", "to least"];
    let heads = heads.into_iter().take(rows.first()?.len() - 1).map(Column::number);
    let mut table = Table::new([Column::text("moved", 8)].into_iter().chain(heads));
    rows.into_iter().for_each(|cells| table.row(cells));
    Some(("what was moved (last run)".into(), table))
}

/// Returns a number of bytes in MiB.
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
