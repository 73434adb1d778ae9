//! Tables for people.

pub(super) mod far;

use super::list::Found;
use super::portrait::{Advised, Block, NotGranted, Portrait, Tally};
use crate::doctor::is_root;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table, TableComponent, presets};
use std::fmt::Write as _;

/// From here on a largest size is no limit.
const NO_LIMIT: u64 = 1 << 50;

/// Everything about one process.
pub(super) fn full(portrait: &Portrait) -> String {
    let mut text = heading(portrait);
    if portrait.blocks.is_empty() {
        text += "\nNo large block is alive now.\n";
    } else {
        let _ = write!(text, "\n{}\n", blocks(portrait));
    }
    if !portrait.advised.is_empty() {
        let _ = write!(
            text,
            "\nMappings of other libraries, advised\n{}\n",
            advised(&portrait.advised, portrait.exact)
        );
    }
    if let Some(far) = &portrait.far {
        text += &far::all(far);
    }
    let _ = write!(text, "\nSince the start\n{}\n", counters(&portrait.counters));
    if portrait.not_granted.is_empty() {
        text += "\nEvery request was granted.\n";
    } else {
        let _ = write!(text, "\nNot granted\n{}\n", not_granted(&portrait.not_granted));
    }
    text += &notes(portrait);
    text
}

/// One line a process.
pub(super) fn of_all(found: &Found) -> String {
    let mut text = String::new();
    if found.processes.is_empty() {
        text += "No process with large blocks was found; start one with `largesse run -- PROGRAM`.\n";
    } else {
        let columns =
            ["pid", "pages", "blocks", "size", "in memory", "on large pages", "not granted", "command"];
        let mut table = table(&columns, &[0, 2, 3, 4, 5, 6]);
        for one in &found.processes {
            table.add_row([
                number(one.pid),
                Cell::new(one.pages),
                number(one.blocks),
                right(size(one.bytes)),
                right(size(one.resident_bytes)),
                right(share(Some(one.large_bytes), one.bytes, true)),
                number(one.not_granted),
                Cell::new(&one.command),
            ]);
        }
        let _ = writeln!(text, "{table}");
    }
    if found.not_permitted > 0 {
        let processes = if found.not_permitted == 1 { "process" } else { "processes" };
        let more = if is_root() { "" } else { "; root sees more" };
        let _ = writeln!(text, "{} {processes} may not be looked at{more}.", found.not_permitted);
    }
    text
}

/// `1.5 GiB`: four characters and the unit.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 1_u64 << 10;
    for (place, name) in UNITS.iter().enumerate() {
        if place + 1 == UNITS.len() || bytes >> 10 < unit {
            let tenths = u128::from(bytes) * 10 / u128::from(unit);
            return match (bytes, tenths) {
                (0, _) => "0".into(),
                (1..1024, _) => format!("{bytes} B"),
                (_, 1000..) => format!("{} {name}", tenths / 10),
                _ => format!("{}.{} {name}", tenths / 10, tenths % 10),
            };
        }
        unit <<= 10;
    }
    unreachable!("the last unit takes every number")
}

fn heading(portrait: &Portrait) -> String {
    let limits = match portrait.max_bytes {
        NO_LIMIT.. => format!("blocks from {}", size(portrait.min_bytes)),
        most => format!("blocks of {} to {}", size(portrait.min_bytes), size(most)),
    };
    let place = match portrait.node.as_str() {
        "first-touch" => "node of first touch".into(),
        "interleave" => "interleaved over nodes".into(),
        node => format!("node {node}"),
    };
    let mut facts =
        vec![format!("pages {}", portrait.pages), limits, format!("header {}", portrait.header), place];
    if portrait.locked {
        facts.push("locked".into());
    }
    facts.push(portrait.hooked.into());
    facts.push(if portrait.enabled { "on".into() } else { "off: new blocks are not taken".into() });
    format!("Process {}: {}\n{}\n", portrait.pid, portrait.command, facts.join(" · "))
}

/// The blocks, and their sum below a line.
fn blocks(portrait: &Portrait) -> String {
    let mut table = table(&["address", "size", "kind", "in memory", "on large pages", "node"], &[1, 3, 4, 5]);
    // Narrow enough for any terminal; and one line a row is what the sum below relies on.
    table.set_content_arrangement(ContentArrangement::Disabled);
    for block in &portrait.blocks {
        table.add_row(row(block, portrait.exact));
    }
    let totals = &portrait.totals;
    table.add_row([
        Cell::new(match totals.blocks {
            1 => "1 block".into(),
            count => format!("{count} blocks"),
        }),
        right(size(totals.bytes)),
        Cell::new(""),
        right(size(totals.resident_bytes)),
        right(share(Some(totals.large_bytes), totals.bytes, portrait.exact)),
        Cell::new(""),
    ]);
    let text = table.to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    if let [.., _sum, border] = lines[..] {
        lines.insert(lines.len() - 2, border);
    }
    lines.join("\n")
}

fn row(block: &Block, exact: bool) -> [Cell; 6] {
    [
        Cell::new(&block.address),
        right(size(block.size)),
        Cell::new(block.kind),
        right(block.resident_bytes.map_or("?".into(), size)),
        right(share(block.large_bytes, block.size, exact)),
        right(block.node.map_or("–".into(), |node| node.to_string())),
    ]
}

fn advised(mappings: &[Advised], exact: bool) -> Table {
    let mut table = table(&["address", "size", "in memory", "on large pages"], &[1, 2, 3]);
    for mapping in mappings {
        table.add_row([
            Cell::new(&mapping.address),
            right(size(mapping.size)),
            right(mapping.resident_bytes.map_or("?".into(), size)),
            right(share(mapping.large_bytes, mapping.size, exact)),
        ]);
    }
    table
}

/// Two facts a row.
fn pairs(rows: &[[(&str, String); 2]]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for [left, other] in rows {
        table.add_row([
            Cell::new(format!("  {}", left.0)),
            right(left.1.clone()),
            Cell::new(format!("   {}", other.0)),
            right(other.1.clone()),
        ]);
    }
    table
}

fn counters(tally: &Tally) -> Table {
    let of_all = |count: u64| match tally.allocations {
        0 => String::new(),
        all => format!(" ({})", percent(count, all)),
    };
    pairs(&[
        [
            ("blocks handed out", tally.allocations.to_string()),
            ("blocks given back", tally.frees.to_string()),
        ],
        [
            ("re-used touched memory", format!("{}{}", tally.reused, of_all(tally.reused))),
            ("new memory handed out", size(tally.fresh_bytes)),
        ],
        [("size now", size(tally.live_bytes)), ("size at most", size(tally.peak_bytes))],
        [
            ("kept for re-use", size(tally.retained_bytes)),
            ("returned to the kernel", size(tally.returned_bytes)),
        ],
        [
            ("prepared ahead of need", size(tally.populated_bytes)),
            ("calloc: clearing spared", size(tally.clear_skipped_bytes)),
        ],
        [
            ("resized in place", tally.resized_in_place.to_string()),
            ("moved by page tables", tally.moved_by_mremap.to_string()),
        ],
        [("mappings advised", tally.advised_mappings.to_string()), ("their size", size(tally.advised_bytes))],
    ])
}

fn not_granted(causes: &[NotGranted]) -> Table {
    let mut table = table(&["times", "cause", "what to do"], &[0]);
    for one in causes {
        table.add_row([number(one.count), Cell::new(&one.cause), Cell::new(&one.advice)]);
    }
    table
}

fn notes(portrait: &Portrait) -> String {
    let mut text = String::new();
    if !portrait.exact {
        text += "\n~ this kernel (before 6.7) counts large pages per mapping: a block is shown its share, and no node.\n";
    }
    if portrait.blocks.iter().any(|block| block.kind == "64k") {
        text += "\nThe kernel does not say which pages are 64 KiB ones; \"on large pages\" counts 2 MiB and above.\n";
    }
    if !portrait.steady {
        text += "\nThe program was busy with its blocks: some may be missing or gone.\n";
    }
    text
}

/// `61.9 GiB  98%`.
fn share(part: Option<u64>, whole: u64, exact: bool) -> String {
    let about = if exact { "" } else { "~" };
    part.map_or("?".into(), |part| format!("{about}{}{:>6}", size(part), percent(part, whole)))
}

/// Rounded down: 100 % is all of it.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{} %", u128::from(part) * 100 / u128::from(whole))
}

fn table(columns: &[&str], to_the_right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    for between in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(between);
    }
    for header in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(header, '─');
    }
    table.set_header(
        columns
            .iter()
            .enumerate()
            .map(|(place, name)| if to_the_right.contains(&place) { right(*name) } else { Cell::new(name) }),
    );
    table
}

fn number(value: impl std::fmt::Display) -> Cell {
    right(value.to_string())
}

fn right(text: impl Into<String>) -> Cell {
    Cell::new(text.into()).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_at_a_glance() {
        let cases = [
            (0, "0"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            ((100 << 20) + 1, "100 MiB"),
            (1 << 20, "1.0 MiB"),
            ((1 << 20) - 1, "1023 KiB"),
            (3 << 60, "3.0 EiB"),
            (u64::MAX, "15.9 EiB"),
        ];
        for (bytes, want) in cases {
            assert_eq!(size(bytes), want);
        }
    }

    #[test]
    fn a_hundred_percent_is_all_of_it() {
        assert_eq!(percent(999, 1000), "99 %");
        assert_eq!(percent(1000, 1000), "100 %");
        assert_eq!(percent(1, 0), "");
        assert_eq!(percent(u64::MAX, u64::MAX), "100 %");
    }
}
