//! Formats snapshots as tables.

mod far;
mod known;

use super::process_list::ProcessList;
use super::process_snapshot::{Advised, Block, LimitSnapshot, NotGranted, ProcessSnapshot, Tally};
use crate::doctor::is_root;
use known::known;
use largesse_terminal::say::counted;
use largesse_terminal::size;
use largesse_terminal::table::{Column, Paper, Table, facts};
use std::fmt::Write as _;

/// Maximum number of rows for blocks. Formatting a row takes some kilobytes of memory, so that a table of millions of
/// blocks would exhaust it.
const MOST_ROWS: usize = 4000;
/// Maximum number of unreadable processes that are listed.
const MOST_NAMED: usize = 20;
/// Value of `max-kb`, in bytes, from which it is shown as no limit.
const NO_LIMIT: u64 = 1 << 50;

/// Returns the tables of one process.
pub(super) fn full(snapshot: &ProcessSnapshot, paper: Paper) -> String {
    let mut text = heading(snapshot);
    if snapshot.blocks.is_empty() {
        text += "\nNo large block is alive now.\n";
    } else {
        let _ = write!(text, "\n{}", blocks(snapshot, paper));
    }
    if !snapshot.advised.is_empty() {
        let _ = write!(
            text,
            "\nMappings of other libraries, advised\n{}",
            advised(&snapshot.advised, snapshot.exact).show(paper)
        );
    }
    if snapshot.small_bytes > 0 {
        let bytes = size(snapshot.small_bytes);
        let _ = write!(text, "\nSmall blocks take {bytes} in blocks of 2 MiB above.\n");
    }
    if let Some(limit) = &snapshot.limit {
        text += &limit_of(limit);
    }
    if let Some(far) = &snapshot.far {
        text += &far::all(far, paper);
    }
    let _ = write!(text, "\nSince the start\n{}", counters(&snapshot.counters, paper));
    if snapshot.not_granted.is_empty() {
        text += "\nEvery request was granted.\n";
    } else {
        let _ = write!(text, "\nNot granted\n{}", not_granted(&snapshot.not_granted).show(paper));
    }
    text += &notes(snapshot);
    paper.page(&text)
}

/// Returns the list of processes, one a line.
pub(super) fn of_all(found: &ProcessList, paper: Paper) -> String {
    let mut text = String::new();
    if found.processes.is_empty() {
        text += "No process with large blocks was found; start one with `largesse run -- PROGRAM`.\n";
    } else {
        let mut table = Table::new([
            Column::number("pid"),
            Column::text("pages", 5).spare(4),
            Column::number("blocks").spare(5),
            Column::number("size").spare(2),
            Column::number("in memory"),
            Column::number("on large pages").spare(1),
            Column::number("not granted").spare(3),
            Column::text("command", 24),
        ]);
        for one in &found.processes {
            table.row([
                one.pid.to_string(),
                one.pages.to_owned(),
                one.blocks.to_string(),
                size(one.bytes),
                known(one.resident_bytes),
                share(one.large_bytes, one.bytes, true),
                one.not_granted.to_string(),
                one.command.clone(),
            ]);
        }
        text += &table.show(paper);
    }
    for one in found.processes.iter().filter(|one| one.left_out > 0) {
        let _ = writeln!(text, "{}", left_out(one.pid, one.blocks, one.left_out));
    }
    for one in found.left_out.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "{}", one.why);
    }
    if let Some(more @ 1..) = found.left_out.len().checked_sub(MOST_NAMED) {
        let _ =
            writeln!(text, "{} cannot be shown (--json names them).", counted(more as u64, "more report"));
    }
    if found.not_permitted > 0 {
        let more = if is_root() { "" } else { "; root sees more" };
        let _ = writeln!(text, "{} may not be looked at{more}.", counted(found.not_permitted, "process"));
    }
    paper.page(&text)
}

fn left_out(pid: u32, shown: u64, left_out: u64) -> String {
    let all = shown.saturating_add(left_out);
    format!(
        "Process {pid} reports {}, of which {shown} could be read; the numbers are for these.",
        counted(all, "block")
    )
}

fn heading(snapshot: &ProcessSnapshot) -> String {
    let limits = match snapshot.max_bytes {
        NO_LIMIT.. => format!("blocks from {}", size(snapshot.min_bytes)),
        most => format!("blocks of {} to {}", size(snapshot.min_bytes), size(most)),
    };
    let place = match snapshot.node.as_str() {
        "first-touch" => "node of first touch".into(),
        "interleave" => "interleaved over nodes".into(),
        node => format!("node {node}"),
    };
    let mut facts =
        vec![format!("pages {}", snapshot.pages), limits, format!("header {}", snapshot.header), place];
    if snapshot.locked {
        facts.push("locked".into());
    }
    facts.push(snapshot.hooked.into());
    facts.push(if snapshot.enabled { "on".into() } else { "off: new blocks are not taken".into() });
    format!("Process {}: {}\n{}\n", snapshot.pid, snapshot.command, facts.join(" · "))
}

/// Returns the table of blocks, with their sums below a line.
fn blocks(snapshot: &ProcessSnapshot, paper: Paper) -> String {
    let mut table = Table::new([
        Column::text("address", 14),
        Column::number("size"),
        Column::text("kind", 4).spare(2),
        Column::number("in memory"),
        Column::number("on large pages"),
        Column::number("node").spare(1),
    ]);
    for block in snapshot.blocks.iter().take(MOST_ROWS) {
        table.row(row(block, snapshot.exact));
    }
    let totals = &snapshot.totals;
    table.row([
        counted(totals.blocks, "block"),
        size(totals.bytes),
        String::new(),
        known(totals.resident_bytes),
        share(totals.large_bytes, totals.bytes, snapshot.exact),
        String::new(),
    ]);
    table.apart(1);
    table.show(paper)
}

fn row(block: &Block, exact: bool) -> [String; 6] {
    [
        block.address.clone(),
        size(block.size),
        block.kind.to_owned(),
        known(block.resident_bytes),
        share(block.large_bytes, block.size, exact),
        block.node.map_or("–".into(), |node| node.to_string()),
    ]
}

/// Returns a line about the limit of the process.
fn limit_of(limit: &LimitSnapshot) -> String {
    let bytes = size(limit.bytes);
    if let Some(seconds) = limit.near_again_seconds {
        return format!(
            "\nKept below {bytes} (--limit); memory was evicted, and has been near again for {seconds} s.\n"
        );
    }
    match limit.spilling_seconds {
        None => format!("\nKept below {bytes} (--limit); nothing had to be evicted.\n"),
        Some(seconds) => {
            format!("\nKept below {bytes} (--limit); memory has been evicted for {seconds} s.\n")
        }
    }
}

fn advised(mappings: &[Advised], exact: bool) -> Table {
    let mut table = Table::new([
        Column::text("address", 14),
        Column::number("size"),
        Column::number("in memory"),
        Column::number("on large pages"),
    ]);
    for mapping in mappings {
        table.row([
            mapping.address.clone(),
            size(mapping.size),
            known(mapping.resident_bytes),
            share(mapping.large_bytes, mapping.size, exact),
        ]);
    }
    table
}

fn counters(tally: &Tally, paper: Paper) -> String {
    let of_all = |count: u64| match tally.allocations {
        0 => String::new(),
        all => format!(" ({})", percent(count, all)),
    };
    let pairs = [
        ("blocks handed out", tally.allocations.to_string()),
        ("blocks given back", tally.frees.to_string()),
        ("re-used touched memory", format!("{}{}", tally.reused, of_all(tally.reused))),
        ("new memory handed out", size(tally.fresh_bytes)),
        ("size now", size(tally.live_bytes)),
        ("size at most", size(tally.peak_bytes)),
        ("kept for re-use", size(tally.retained_bytes)),
        ("returned to the kernel", size(tally.returned_bytes)),
        ("prepared ahead of need", size(tally.populated_bytes)),
        ("calloc: clearing spared", size(tally.clear_skipped_bytes)),
        ("resized in place", tally.resized_in_place.to_string()),
        ("moved by page tables", tally.moved_by_mremap.to_string()),
        ("mappings advised", tally.advised_mappings.to_string()),
        ("their size", size(tally.advised_bytes)),
    ];
    facts(&pairs, paper)
}

fn not_granted(causes: &[NotGranted]) -> Table {
    let mut table =
        Table::new([Column::number("times"), Column::text("cause", 12), Column::words("what to do", 16)]);
    for one in causes {
        table.row([one.count.to_string(), one.cause.to_string(), one.advice.to_string()]);
    }
    table
}

fn notes(snapshot: &ProcessSnapshot) -> String {
    let mut text = String::new();
    let (rows, blocks) = (snapshot.blocks.len().min(MOST_ROWS), snapshot.blocks.len());
    if rows < blocks {
        let _ = writeln!(
            text,
            "\nThe first {rows} of {} are listed; --json lists all.",
            counted(blocks as u64, "block")
        );
    }
    if snapshot.left_out > 0 {
        let _ = writeln!(text, "\n{}", left_out(snapshot.pid, blocks as u64, snapshot.left_out));
    }
    if let Some(unread) = &snapshot.unread {
        let _ = writeln!(text, "\n{unread}: what is in memory is not known.");
    } else if !snapshot.exact {
        text += "\n~ this kernel (before 6.7) counts large pages per mapping: each block shows its share, and no node.\n";
    }
    if snapshot.blocks.iter().any(|block| block.kind == "64k") {
        text += "\nThe kernel does not say which pages are 64 KiB ones; \"on large pages\" counts 2 MiB and above.\n";
    }
    if !snapshot.steady {
        text += "\nThe program changed its blocks during the reading: some may be missing or freed.\n";
    }
    text
}

/// Formats bytes and their share of the whole, such as `61.9 GiB  98 %`; `~` marks an estimate.
fn share(part: Option<u64>, whole: u64, exact: bool) -> String {
    let about = if exact { "" } else { "~" };
    part.map_or("?".into(), |part| format!("{about}{}{:>6}", size(part), percent(part, whole)))
}

/// Formats a share in percent, rounded down, so that 100 % means the whole.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{} %", u128::from(part) * 100 / u128::from(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_fits_every_width() {
        let one = |pid, command: &str| crate::status::process_list::Summary {
            pid,
            command: command.into(),
            pages: "hugetlb-1g",
            blocks: 1_048_576,
            bytes: 61_900 << 20,
            resident_bytes: Some(61_900 << 20),
            large_bytes: Some(61_900 << 20),
            not_granted: 262_144,
            left_out: 0,
        };
        let processes = vec![one(4_194_303, "/usr/lib/R/bin/exec/R -f simulation.R"), one(2, "sh")];
        let found = ProcessList { processes, not_permitted: 2, left_out: Vec::new() };
        for columns in [40, 60, 80, 120] {
            let text = of_all(&found, Paper::plain(Some(columns)));
            assert!(text.lines().all(|line| line.len() <= columns), "at {columns} columns:\n{text}");
            for words in ["4194303", "60.4 GiB", "/usr/lib/R/bin"] {
                assert!(text.contains(words) && text.is_ascii(), "{words} at {columns} columns:\n{text}");
            }
        }
    }

    #[test]
    fn hundred_percent_is_whole() {
        assert_eq!(percent(999, 1000), "99 %");
        assert_eq!(percent(1000, 1000), "100 %");
        assert_eq!(percent(1, 0), "");
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
    }
}
