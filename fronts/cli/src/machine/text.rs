//! The machine for people.

use super::seen::{Live, Pages, Seen, source};
use crate::say::counted;
use crate::status::size;
use crate::table::{Column, Paper, Table};
use largesse_machine::topology::{Cache, Holds, Node};
use largesse_machine::{Bitmap, Topology};
use std::fmt::Write as _;

/// What was seen.
pub(super) fn full(seen: &Seen) -> String {
    let topology = &seen.topology;
    let memory: u64 = topology.nodes.iter().map(|node| node.memory).sum();
    let counts = [
        counted(topology.packages.len() as u64, "package"),
        counted(topology.cores.len() as u64, "core"),
        counted(topology.online.len() as u64, "processor"),
        counted(topology.nodes.len() as u64, "NUMA node"),
    ];
    let mut text = format!(
        "{}, Linux {}\n{}, {}\n\n{}",
        seen.processor,
        seen.kernel,
        counts.join(", "),
        size(memory),
        tree(topology)
    );
    let _ = write!(text, "\nCaches\n{}", caches(topology));
    if topology.nodes.len() > 1 {
        let _ = write!(text, "\nDistances between nodes (10: local)\n{}", distances(topology));
    }
    let _ = write!(text, "\nPages\n{}", pages(&seen.pages));
    if let Some(live) = &seen.live {
        let _ = write!(text, "\nThis process\n{}", here(live, topology));
    }
    text
}

/// Packages, their nodes, and the processors under each last cache: cores are apart, threads of one core together.
fn tree(topology: &Topology) -> String {
    let mut text = String::new();
    for (number, package) in topology.packages.iter().enumerate() {
        let _ = writeln!(text, "package {number}: processors {package}");
        for node in topology.nodes.iter().filter(|node| !node.cpus.and(package).is_empty()) {
            let _ = writeln!(text, "  node {}: {}", node.number, memory(node));
            let inside = node.cpus.and(package);
            for (cache, cpus) in groups(topology, &inside) {
                let cores = topology.cores.iter().filter(|core| !core.and(&cpus).is_empty());
                let cores: Vec<String> = cores.map(ToString::to_string).collect();
                let _ = writeln!(
                    text,
                    "    {}{}",
                    cache.map(|it| format!("{}: ", name(it))).unwrap_or_default(),
                    cores.join(" | ")
                );
            }
        }
    }
    for node in topology.nodes.iter().filter(|node| node.cpus.is_empty()) {
        let _ = writeln!(text, "node {}, without processors: {}", node.number, memory(node));
    }
    text
}

fn memory(node: &Node) -> String {
    match node.memory {
        0 => "no memory".into(),
        all => format!("{}, {} free", size(all), size(node.free)),
    }
}

/// The processors of `inside` by the last cache they share.
pub(super) fn groups<'a>(topology: &'a Topology, inside: &Bitmap) -> Vec<(Option<&'a Cache>, Bitmap)> {
    let last = topology.last_cache().map_or(0, |cache| cache.level);
    let mut left = inside.clone();
    let mut found = Vec::new();
    let data = topology.caches.iter().filter(|cache| cache.kind != Holds::Instructions);
    // Where a last level is missing for some processors, the level below it is theirs.
    for level in (2..=last).rev() {
        for cache in data.clone().filter(|cache| cache.level == level) {
            let cpus = cache.cpus.and(&left);
            if !cpus.is_empty() {
                left = left.without(&cpus);
                found.push((Some(cache), cpus));
            }
        }
    }
    if !left.is_empty() {
        found.push((None, left));
    }
    found.sort_by_key(|(_, cpus)| cpus.first());
    found
}

/// `L3 32.0 MiB`.
pub(super) fn name(cache: &Cache) -> String {
    let kind = match cache.kind {
        Holds::Data => "d",
        Holds::Instructions => "i",
        Holds::Both => "",
    };
    format!("L{}{kind} {}", cache.level, size(cache.size))
}

/// One line for all caches that are alike.
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

fn pages(pages: &Pages) -> String {
    let mut text = format!("  {:>9}  base\n", size(pages.base));
    for thp in &pages.thp {
        let _ = writeln!(text, "  {:>9}  transparent: {}", size(thp.size), thp.mode);
    }
    for pool in &pages.pools {
        let _ = writeln!(
            text,
            "  {:>9}  hugetlb pool: {} pages, {} free",
            size(pool.size),
            pool.pages,
            pool.free
        );
    }
    text
}

fn here(live: &Live, topology: &Topology) -> String {
    let precision = live.counter.precision();
    let limit = if live.cpus == topology.online { String::new() } else { format!(" of {}", topology.online) };
    let mut text = format!("  may run on   processors {}{limit}", live.cpus);
    if let Some(nodes) = &live.nodes {
        let _ = write!(text, ", with memory on nodes {nodes}");
    }
    let _ = write!(
        text,
        "\n  counter      {} at {:.3} MHz (calibrations {:.4} % apart), a measurement costs {} ticks ({:.0} ns), step {}\n",
        source(&live.counter),
        live.counter.hertz() / 1e6,
        precision.uncertainty * 100.0,
        precision.overhead.count(),
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

/// Columns to the right. Where there is no room the last ones are left out, and that is said.
pub(super) fn table<R: IntoIterator<Item = String>>(rows: impl IntoIterator<Item = R>) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let column = |place: usize| if place == 0 { Column::number("") } else { Column::number("").spare(1) };
    let mut table = Table::bare((0..columns).map(column));
    rows.into_iter().for_each(|row| table.row(row));
    table.show(Paper::here())
}
