//! The machine as `largesse_picture` draws it.

use super::Measured;
use super::seen::Seen;
use super::text::{groups, name};
use crate::status::size;
use largesse_machine::topology::Holds;
use largesse_machine::{Bitmap, Topology};
use largesse_picture::machine::{Bars, Group, Machine, Series};

pub(super) fn svg(seen: &Seen, measured: &Measured) -> Result<String, String> {
    let topology = &seen.topology;
    let bars = measured.bandwidth.iter().flat_map(|all| {
        all.rows.iter().map(|row| {
            let cpus: Bitmap = row.cpus.iter().copied().collect();
            let named = all.kernels.iter().zip(&row.kernels);
            let bars = named.map(|(kernel, one)| (kernel.name().to_owned(), one.map_or(0.0, |it| it.best)));
            Bars { name: format!("CPU {cpus}, node {}", row.node), bars: bars.collect() }
        })
    });
    let series = measured.ladder.iter().flatten().filter(|climb| !climb.steps.is_empty()).map(|climb| {
        let points = climb.steps.iter().filter_map(|step| Some((step.bytes, step.chase?.best)));
        Series { name: climb.pages.name().to_owned(), points: points.collect() }
    });
    let pairs = measured.cores.as_deref().unwrap_or_default();
    let cpus: Bitmap = pairs.iter().flat_map(|pair| [pair.first, pair.second]).collect();
    let place = |cpu: u32| cpus.iter().position(|it| it == cpu);
    let times = pairs
        .iter()
        .filter_map(|pair| Some((place(pair.first)?, place(pair.second)?, pair.round_trip?.best)));
    largesse_picture::machine::svg(&Machine {
        title: format!("{}, Linux {}", seen.processor, seen.kernel),
        packages: packages(topology),
        bandwidth: bars.collect(),
        latency: series.collect(),
        cores: (cpus.iter().collect(), times.collect()),
    })
}

fn packages(topology: &Topology) -> Vec<Group> {
    let package = |(number, cpus): (usize, &Bitmap)| Group {
        name: format!("package {number}"),
        groups: topology
            .nodes
            .iter()
            .filter(|node| !node.cpus.and(cpus).is_empty())
            .map(|node| Group {
                name: format!("NUMA node {}: {}", node.number, size(node.memory)),
                groups: caches(topology, &node.cpus.and(cpus)),
                cores: Vec::new(),
            })
            .collect(),
        cores: Vec::new(),
    };
    let bare = topology.nodes.iter().filter(|node| node.cpus.is_empty()).map(|node| Group {
        name: format!("NUMA node {} without processors: {}", node.number, size(node.memory)),
        ..Group::default()
    });
    topology.packages.iter().enumerate().map(package).chain(bare).collect()
}

fn caches(topology: &Topology, inside: &Bitmap) -> Vec<Group> {
    let group = |(cache, cpus): (Option<&largesse_machine::topology::Cache>, Bitmap)| Group {
        name: cache.map_or(String::new(), name),
        groups: Vec::new(),
        cores: topology
            .cores
            .iter()
            .filter(|core| !core.and(&cpus).is_empty())
            .map(|core| lines(topology, core, cache))
            .collect(),
    };
    groups(topology, inside).into_iter().map(group).collect()
}

/// A core: its processors, and the caches below the one it is drawn in.
fn lines(
    topology: &Topology,
    core: &Bitmap,
    above: Option<&largesse_machine::topology::Cache>,
) -> Vec<String> {
    let below = topology.caches.iter().rev().filter(|cache| {
        cache.kind != Holds::Instructions
            && core.is_within(&cache.cpus)
            && above.is_none_or(|it| cache.level < it.level)
    });
    std::iter::once(format!("CPU {core}")).chain(below.map(name)).collect()
}
