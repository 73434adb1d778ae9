//! Formats the snapshot of a machine as text.

use super::snapshot::{Live, MachineSnapshot, PageSizes, source};
use super::tree::{Kind, TopologyPart, parts};
use super::words::{memory, name, whole_memory};
use largesse_machine::topology::Cache;
use largesse_machine::{Bitmap, Topology};
use largesse_terminal::say::counted;
use largesse_terminal::size;
use largesse_terminal::table::{Column, Paper, Table};
use std::fmt::Write as _;

/// Returns the text of a whole snapshot.
pub(super) fn full(seen: &MachineSnapshot) -> String {
    let topology = &seen.topology;
    let nodes = if topology.nodes_are_known { topology.nodes.len() } else { 0 };
    let counts = [
        known(topology.packages.len(), "package"),
        known(topology.cores.len(), "core"),
        counted(topology.online.len() as u64, "processor"),
        known(nodes, "NUMA node"),
    ];
    let mut text = format!(
        "{}, Linux {}\n{}, {}\n\n{}",
        seen.processor,
        seen.kernel,
        counts.join(", "),
        whole_memory(topology).map_or_else(|| "memory not known".to_owned(), size),
        tree(topology)
    );
    if !topology.kinds.is_empty() {
        let _ = write!(text, "\nKinds of cores\n{}", kinds(topology));
    }
    let caches = if topology.caches.is_empty() { "  not known\n".into() } else { caches(topology) };
    let _ = write!(text, "\nCaches\n{caches}");
    if topology.nodes.len() > 1 {
        let _ = write!(text, "\nDistances between nodes (10: local)\n{}", distances(topology));
    }
    let _ = write!(text, "\nPages\n{}", pages(&seen.pages));
    if let Some(live) = &seen.live {
        let _ = write!(text, "\nThis process\n{}", here(live, topology));
    }
    text
}

/// Returns the count and the noun as [`counted`] does, or a text such as `cores not known` if the count is 0.
fn known(count: usize, noun: &str) -> String {
    if count == 0 { format!("{noun}s not known") } else { counted(count as u64, noun) }
}

/// Returns the packages, nodes and shared caches with their cores, each core with the list of its threads.
fn tree(topology: &Topology) -> String {
    let mut text = String::new();
    for part in parts(topology) {
        describe(&mut text, &part, 0);
    }
    for node in topology.nodes.iter().filter(|node| node.cpus.is_empty()) {
        let _ = writeln!(text, "node {}, without processors: {}", node.number, memory(node));
    }
    for file in topology.unread.iter().take(1) {
        let more = topology.unread.len() - 1;
        let and =
            if more == 0 { String::new() } else { format!(", and {}", counted(more as u64, "other file")) };
        let _ = writeln!(
            text,
            "cannot be read, so that something is missing here: {}{and}",
            largesse_terminal::name(file)
        );
    }
    text
}

fn describe(text: &mut String, part: &TopologyPart, depth: usize) {
    let indent = "  ".repeat(depth);
    let cores: Vec<String> = part.cores.iter().map(ToString::to_string).collect();
    let cores = cores.join(" | ");
    let name = &part.name;
    let _ = match part.kind {
        Kind::Unknown => {
            let all: Bitmap = part.cores.iter().flat_map(Bitmap::iter).collect();
            writeln!(text, "{indent}processors {all}")
        }
        Kind::Cache(_) if cores.is_empty() => writeln!(text, "{indent}{name}"),
        Kind::Cache(_) => writeln!(text, "{indent}{name}: {cores}"),
        Kind::Package | Kind::Node if cores.is_empty() => writeln!(text, "{indent}{name}: {}", part.note),
        Kind::Package | Kind::Node => writeln!(text, "{indent}{name}: {}\n{indent}  {cores}", part.note),
    };
    part.parts.iter().for_each(|inner| describe(text, inner, depth + 1));
}

/// Returns the table of the kinds of core, one row each.
fn kinds(topology: &Topology) -> String {
    table(topology.kinds.iter().map(|kind| {
        let cores = topology.cores.iter().filter(|core| core.is_within(&kind.cpus)).count();
        [kind.name.to_owned(), known(cores, "core"), format!("processors {}", kind.cpus)]
    }))
}

/// Returns the table of caches, one row for all that have the same level, kind, size and number of processors.
fn caches(topology: &Topology) -> String {
    let mut kinds: Vec<(&Cache, usize)> = Vec::new();
    for cache in &topology.caches {
        let alike = |it: &Cache| {
            (it.level, it.kind, it.size, it.cpus.len())
                == (cache.level, cache.kind, cache.size, cache.cpus.len())
        };
        match kinds.iter_mut().find(|(it, _)| alike(it)) {
            Some((_, count)) => *count += 1,
            None => kinds.push((cache, 1)),
        }
    }
    let rows = kinds.into_iter().map(|(cache, count)| {
        let line = if cache.line > 0 { format!("lines of {} B", cache.line) } else { String::new() };
        let ways = if cache.ways > 0 { counted(cache.ways, "way") } else { String::new() };
        [
            name(cache),
            format!("{count} of them"),
            format!("each for {}", counted(cache.cpus.len() as u64, "processor")),
            line,
            ways,
        ]
    });
    table(rows)
}

fn distances(topology: &Topology) -> String {
    let columns = topology.nodes.iter().map(|node| node.number.to_string());
    let header: Vec<String> = std::iter::once("from \\ to".to_owned()).chain(columns).collect();
    let rows = topology.nodes.iter().map(|node| {
        let row = topology
            .nodes
            .iter()
            .map(|to| node.distance_to(to.number).map_or("?".into(), |it| it.to_string()));
        std::iter::once(node.number.to_string()).chain(row).collect::<Vec<_>>()
    });
    table(std::iter::once(header).chain(rows))
}

fn pages(pages: &PageSizes) -> String {
    let mut text = format!("  {:>9}  base\n", size(pages.base));
    for thp in &pages.thp {
        let _ = writeln!(text, "  {:>9}  transparent: {}", size(thp.size), thp.mode);
    }
    if let Some(file) = &pages.thp_unread {
        let _ = writeln!(text, "  {:>9}  transparent: {file} cannot be read (largesse doctor tries)", "?");
    }
    for pool in &pages.pools {
        let all = pool.pages.map_or("pages not known".to_owned(), |pages| counted(pages, "page"));
        let free = pool.free.map_or("free ones not known".to_owned(), |free| format!("{free} free"));
        let _ = writeln!(text, "  {:>9}  hugetlb pool: {all}, {free}", size(pool.size));
    }
    if let Some(folder) = &pages.pools_unread {
        let _ =
            writeln!(text, "  {:>9}  hugetlb pools: {} cannot be read", "?", largesse_terminal::name(folder));
    }
    text
}

fn here(live: &Live, topology: &Topology) -> String {
    let precision = live.counter.precision();
    let limit = if live.cpus == topology.online { String::new() } else { format!(" of {}", topology.online) };
    let mut text = format!("  may run on   processors {}{limit}", live.cpus);
    if live.pinned != live.cpus {
        let _ = write!(text, ", pinned to {}", live.pinned);
    }
    if let Some(nodes) = &live.nodes {
        let _ = write!(text, ", with memory on nodes {nodes}");
    }
    let _ = write!(
        text,
        "\n  counter      {} at {:.3} MHz (calibrations {:.4} % apart), a measurement costs {} ({:.0} ns), step {}\n",
        source(&live.counter),
        live.counter.hertz() / 1e6,
        precision.uncertainty * 100.0,
        counted(precision.overhead.count(), "tick"),
        live.counter.nanoseconds(precision.overhead),
        precision.step.count(),
    );
    if let Some(why) = live.counter.fallback() {
        let _ = writeln!(text, "               instead of the processor's: {why}");
    }
    match &live.clock {
        Some(clock) => {
            let _ = writeln!(
                text,
                "  core clock   {:.3} GHz (middle {:.1} % below): {:.4} cycles for each tick",
                clock.hertz / 1e9,
                clock.spread * 100.0,
                clock.per_tick(&live.counter)
            );
        }
        None => text += "  core clock   not known for this kind of processor\n",
    }
    let _ = writeln!(text, "  instructions {}", live.instructions.join(" "));
    text
}

/// Returns a table with columns aligned to the right. A narrow terminal loses the last columns, with a note.
pub(super) fn table<R: IntoIterator<Item = String>>(rows: impl IntoIterator<Item = R>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |place: usize| if place == 0 { Column::number("") } else { Column::number("").spare(1) };
    let mut table = Table::bare((0..columns).map(column));
    rows.into_iter().for_each(|row| table.row(row));
    table.show(Paper::here())
}
