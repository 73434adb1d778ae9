//! Draws the machine with `largesse_plot`.

use super::measured::Measured;
use super::snapshot::MachineSnapshot;
use super::tree::{Kind, TopologyPart, parts};
use super::words::{memory, name};
use largesse_machine::topology::Holds;
use largesse_machine::{Bitmap, Topology};
use largesse_plot::machine::{Bars, MachineDrawing, NamedBox, Series};

pub(super) fn svg(seen: &MachineSnapshot, measured: &Measured) -> Result<String, String> {
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
    largesse_plot::machine::svg(&MachineDrawing {
        title: format!("{}, Linux {}", seen.processor, seen.kernel),
        packages: packages(topology),
        bandwidth: bars.collect(),
        latency: series.collect(),
        cores: (cpus.iter().collect(), times.collect()),
    })
}

fn packages(topology: &Topology) -> Vec<NamedBox> {
    let bare = topology.nodes.iter().filter(|node| node.cpus.is_empty()).map(|node| NamedBox {
        name: format!("NUMA node {} without processors: {}", node.number, memory(node)),
        ..NamedBox::default()
    });
    parts(topology).iter().map(|part| group(topology, part, None)).chain(bare).collect()
}

/// Returns the box of a part; `above` is the level of the cache that encloses it, if any.
fn group(topology: &Topology, part: &TopologyPart, above: Option<u32>) -> NamedBox {
    let above = if let Kind::Cache(level) = part.kind { Some(level) } else { above };
    let name = match part.kind {
        Kind::Node => format!("NUMA {}: {}", part.name, part.note),
        Kind::Unknown => "packages and caches not known".into(),
        Kind::Package | Kind::Cache(_) => part.name.clone(),
    };
    NamedBox {
        name,
        groups: part.parts.iter().map(|inner| group(topology, inner, above)).collect(),
        cores: part.cores.iter().map(|core| lines(topology, core, above)).collect(),
    }
}

/// Returns the lines of a core's box: its processors, its kind, and its caches below level `above`.
fn lines(topology: &Topology, core: &Bitmap, above: Option<u32>) -> Vec<String> {
    let below = topology.caches.iter().rev().filter(|cache| {
        cache.kind != Holds::Instructions
            && core.is_within(&cache.cpus)
            && above.is_none_or(|above| cache.level < above)
    });
    let kind =
        topology.kinds.iter().filter(|kind| core.is_within(&kind.cpus)).map(|kind| kind.name.to_owned());
    std::iter::once(format!("CPU {core}")).chain(kind).chain(below.map(name)).collect()
}
