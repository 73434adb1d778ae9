//! A snapshot of a process's heap: the fields of the JSON object, which the table prints as well.

use super::decode::{self, Heap, in_user_space};
use super::process::Process;
use super::residency::{RangeResidency, ResidencyReader};
use largesse_far::totals::Words;
use largesse_pager::{COUNTS, Count};
use largesse_report::{BlockKind, BlockRecord, CAUSES, Cause, Counters, HeapReport, PageChoice, Region};
use serde::Serialize;
use std::iter;
use std::time::Instant;

/// A process and its large blocks. All sizes are in bytes.
#[derive(Debug, Serialize)]
pub(super) struct ProcessSnapshot {
    pub(super) pid: u32,
    pub(super) command: String,
    /// The requested kind of page.
    pub(super) pages: &'static str,
    /// Whether the library serves new blocks.
    pub(super) enabled: bool,
    /// How the library replaces malloc: `preloaded`, `patched` or `functions`.
    pub(super) hooked: &'static str,
    pub(super) min_bytes: u64,
    pub(super) max_bytes: u64,
    pub(super) header: u32,
    pub(super) locked: bool,
    /// The placement: `first-touch`, `interleave` or the number of a node.
    pub(super) node: String,
    /// Whether large pages are counted one by one; otherwise the kernel only tells how much of each mapping is on them.
    pub(super) exact: bool,
    /// Why the bytes in memory are unknown: a message about the unreadable file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unread: Option<String>,
    /// Whether the heap did not change while it was read; otherwise blocks may be missing or stale.
    pub(super) steady: bool,
    pub(super) blocks: Vec<Block>,
    /// Number of reported blocks that are not shown.
    pub(super) left_out: u64,
    pub(super) totals: Totals,
    /// Mappings of other libraries that were advised to use huge pages and are still mapped.
    pub(super) advised: Vec<Advised>,
    pub(super) counters: Tally,
    /// Far memory, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) far: Option<FarSnapshot>,
    /// The limit below which the process is kept, with `--limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<LimitSnapshot>,
    /// Bytes in slabs of small blocks; 0 while the C library serves these.
    pub(super) small_bytes: u64,
    pub(super) not_granted: Vec<NotGranted>,
}

/// A limit on the memory of a process.
#[derive(Debug, Serialize)]
pub(super) struct LimitSnapshot {
    pub(super) bytes: u64,
    /// Milliseconds for which large blocks could not be allocated while they became far memory; `None` as long as they
    /// are not far.
    pub(super) change_over_ms: Option<f64>,
    /// Number of seconds for which memory has been evicted to stay below the limit; `None` if none was.
    pub(super) spilling_seconds: Option<u64>,
    /// Number of times that large blocks became near memory again.
    pub(super) near_again: u64,
    /// Number of seconds for which they have been near again; `None` if they are far, or always were near.
    pub(super) near_again_seconds: Option<u64>,
}

impl LimitSnapshot {
    fn of(report: &HeapReport) -> Option<LimitSnapshot> {
        let seconds_since = |second: u64| {
            (second != 0).then(|| u64::from(largesse_pages::now_seconds()).saturating_sub(second))
        };
        (report.limit_bytes != 0).then(|| LimitSnapshot {
            bytes: report.limit_bytes,
            change_over_ms: (report.change_over_ns != 0).then_some(report.change_over_ns as f64 * 1e-6),
            spilling_seconds: seconds_since(report.spilling_since),
            near_again: report.near_again,
            near_again_seconds: seconds_since(report.near_since),
        })
    }
}

/// The counters of far memory (`largesse_pager::Count`), in total and by segment.
#[derive(Debug, Serialize)]
pub(super) struct FarSnapshot {
    #[serde(flatten)]
    pub(super) words: Words,
    pub(super) regions: Vec<FarRegion>,
    /// Name of the store without secrets.
    pub(super) store: String,
    /// The agent process that holds the pages, if any.
    pub(super) agent: Option<Agent>,
}

/// The agent process that holds a program's far pages.
#[derive(Debug, Serialize)]
pub(super) struct Agent {
    pub(super) pid: u64,
    /// Resident bytes, or `None` if unknown, as for a process that has ended.
    pub(super) memory_bytes: Option<u64>,
    pub(super) locked_bytes: Option<u64>,
}

/// A segment of far memory.
#[derive(Debug, Serialize)]
pub(super) struct FarRegion {
    /// The kind of segment: `heap`, `static` or `mapping`.
    pub(super) region: &'static str,
    pub(super) address: String,
    pub(super) size: u64,
    #[serde(flatten)]
    pub(super) words: Words,
}

/// A live block, or one of the two parts of a block on two kinds of page.
#[derive(Debug, Serialize)]
pub(super) struct Block {
    pub(super) address: String,
    pub(super) size: u64,
    pub(super) kind: &'static str,
    pub(super) resident_bytes: Option<u64>,
    pub(super) large_bytes: Option<u64>,
    pub(super) node: Option<u32>,
}

/// The sums of the blocks' sizes and of their bytes in memory.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    pub(super) blocks: u64,
    pub(super) bytes: u64,
    /// Bytes in memory, or `None` if unknown for a block.
    pub(super) resident_bytes: Option<u64>,
    pub(super) large_bytes: Option<u64>,
}

/// A mapping of another library that was advised to use huge pages.
#[derive(Debug, Serialize)]
pub(super) struct Advised {
    pub(super) address: String,
    pub(super) size: u64,
    pub(super) resident_bytes: Option<u64>,
    pub(super) large_bytes: Option<u64>,
}

/// The counters of the heap (`largesse_report::Counters`) by their JSON names.
#[derive(Debug, Serialize)]
pub(super) struct Tally {
    pub(super) allocations: u64,
    pub(super) frees: u64,
    pub(super) live_bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) reused: u64,
    pub(super) fresh_bytes: u64,
    pub(super) retained_bytes: u64,
    pub(super) returned_bytes: u64,
    pub(super) populated_bytes: u64,
    pub(super) clear_skipped_bytes: u64,
    pub(super) resized_in_place: u64,
    pub(super) moved_by_mremap: u64,
    pub(super) advised_mappings: u64,
    pub(super) advised_bytes: u64,
}

/// The number of requests that got less than they asked for, by cause.
#[derive(Debug, Serialize)]
pub(super) struct NotGranted {
    pub(super) cause: String,
    pub(super) count: u64,
    pub(super) advice: String,
}

impl ProcessSnapshot {
    /// Takes a snapshot of the heap; blocks whose pages were not looked at by `deadline` are left out.
    pub(super) fn of(process: &Process, heap: &Heap, deadline: Instant) -> ProcessSnapshot {
        let reader = ResidencyReader::on(process.pid);
        let report = &*heap.report;
        let mut looked_at = 0;
        let in_time =
            heap.blocks.iter().take_while(|_| Instant::now() < deadline).inspect(|_| looked_at += 1);
        let look = |record: BlockRecord| (record, reader.look(record.address, record.size));
        let (parts, seen): (Vec<BlockRecord>, Vec<RangeResidency>) =
            in_time.flat_map(|block| parts(*block)).map(look).unzip();
        let blocks: Vec<Block> =
            parts.iter().zip(&seen).map(|(record, seen)| block(record, *seen, report)).collect();
        let advised = advised(process, report, &reader);
        let unread = reader.unread();
        ProcessSnapshot {
            pid: process.pid,
            command: process.command.clone(),
            pages: pages(report).map_or("unknown", PageChoice::word),
            enabled: report.enabled != 0,
            hooked: ["preloaded", "patched", "functions"].get(report.patched as usize).unwrap_or(&"unknown"),
            min_bytes: report.min_bytes,
            max_bytes: report.max_bytes,
            header: report.header,
            locked: report.locked != 0,
            node: match report.node {
                -1 => "first-touch".into(),
                -2 => "interleave".into(),
                node => node.to_string(),
            },
            exact: seen.iter().all(|seen| seen.exact),
            steady: heap.steady,
            totals: Totals { blocks: looked_at, ..totals(&blocks, unread.is_none()) },
            left_out: heap.left_out + (heap.blocks.len() as u64 - looked_at),
            blocks,
            advised,
            unread,
            counters: Tally::from(&report.counters),
            far: heap.far.as_ref().map(far),
            limit: LimitSnapshot::of(report),
            small_bytes: report.small_bytes,
            not_granted: not_granted(&report.not_granted),
        }
    }

    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn far(far: &decode::FarReport) -> FarSnapshot {
    let named = |words: &[u64; COUNTS]| Count::NAMES.into_iter().zip(*words).collect();
    let region = |segment: &decode::Segment| FarRegion {
        region: Region::word(segment.label),
        address: format!("{:#x}", segment.start),
        size: segment.len,
        words: named(&segment.words),
    };
    FarSnapshot {
        words: named(&far.words),
        regions: far.segments.iter().map(region).collect(),
        store: largesse_text::line(far.store.name()),
        agent: (far.store.agent != 0).then(|| agent(far.store.agent)),
    }
}

fn agent(pid: u64) -> Agent {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let bytes = |name: &str| {
        let mut words = status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        words.next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Agent { pid, memory_bytes: bytes("VmRSS:"), locked_bytes: bytes("VmLck:") }
}

fn parts(block: BlockRecord) -> impl Iterator<Item = BlockRecord> {
    let (first, second) = block.parts();
    iter::once(first).chain(second)
}

fn block(record: &BlockRecord, seen: RangeResidency, report: &HeapReport) -> Block {
    Block {
        address: format!("{:#x}", record.address),
        size: record.size,
        kind: kind(record.kind, report),
        resident_bytes: seen.resident,
        large_bytes: seen.large,
        node: seen.node,
    }
}

fn kind(number: u32, report: &HeapReport) -> &'static str {
    const THP: u32 = BlockKind::Thp as u32;
    const HUGETLB: u32 = BlockKind::Hugetlb as u32;
    const SMALL: u32 = BlockKind::Small as u32;
    const MIXED: u32 = BlockKind::Mixed as u32;
    match number {
        THP => "thp",
        HUGETLB => "hugetlb",
        SMALL
            if pages(report) == Some(PageChoice::Medium)
                && report.not_granted[Cause::Pages64kNotOffered as usize] == 0 =>
        {
            "64k"
        }
        SMALL => "4k",
        MIXED => "mixed",
        _ => "unknown",
    }
}

fn pages(report: &HeapReport) -> Option<PageChoice> {
    PageChoice::WORDS.iter().map(|(_, pages)| *pages).find(|pages| *pages as u32 == report.pages)
}

/// Returns the sums over the blocks; the sums of bytes in memory are `None` unless `are_known`.
fn totals(blocks: &[Block], are_known: bool) -> Totals {
    let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0, u64::saturating_add);
    let sum_known = |of: fn(&Block) -> Option<u64>| are_known.then(|| sum(&mut blocks.iter().filter_map(of)));
    Totals {
        blocks: blocks.len() as u64,
        bytes: sum(&mut blocks.iter().map(|block| block.size)),
        resident_bytes: sum_known(|block| block.resident_bytes),
        large_bytes: sum_known(|block| block.large_bytes),
    }
}

/// Returns the mappings that were advised to use huge pages and are still mapped: libraries unmap them without notice.
fn advised(process: &Process, report: &HeapReport, reader: &ResidencyReader) -> Vec<Advised> {
    let known = report.advised.iter().filter(|[address, len]| *len != 0 && in_user_space(*address, *len));
    known
        .filter_map(|&[address, len]| {
            let size = process.anonymous(address, len);
            if size == 0 {
                return None;
            }
            let seen = reader.look(address, len);
            Some(Advised {
                address: format!("{address:#x}"),
                size,
                resident_bytes: seen.resident.map(|bytes| bytes.min(size)),
                large_bytes: seen.large.map(|bytes| bytes.min(size)),
            })
        })
        .collect()
}

fn not_granted(counts: &[u64; CAUSES]) -> Vec<NotGranted> {
    let named = Cause::ALL.into_iter().zip(counts).filter(|(_, count)| **count > 0);
    let words = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    named
        .map(|(cause, count)| NotGranted {
            cause: words(cause.name()),
            count: *count,
            advice: words(cause.advice()),
        })
        .collect()
}

impl From<&Counters> for Tally {
    fn from(counters: &Counters) -> Tally {
        let Counters {
            allocations,
            frees,
            live_bytes,
            peak_bytes,
            reused,
            fresh_bytes,
            retained_bytes,
            returned_bytes,
            populated_bytes,
            clear_skipped_bytes,
            resized_in_place,
            moved_by_mremap,
            advised_mappings,
            advised_bytes,
        } = *counters;
        Tally {
            allocations,
            frees,
            live_bytes,
            peak_bytes,
            reused,
            fresh_bytes,
            retained_bytes,
            returned_bytes,
            populated_bytes,
            clear_skipped_bytes,
            resized_in_place,
            moved_by_mremap,
            advised_mappings,
            advised_bytes,
        }
    }
}
