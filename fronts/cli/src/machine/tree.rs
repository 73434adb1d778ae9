//! Nests packages, nodes and shared caches, each inside the smallest one that holds all of its processors.
//!
//! ```text
//!   package ─ node ─ L3 ─ L2 of four cores ─ cores      the usual order
//!   package ─ L3 ─ nodes ─ cores                        one cache for several nodes
//! ```
//! Each shared part appears once, whatever it spans. Parts that the kernel does not report are omitted.

use super::words::{memory, name};
use largesse_machine::topology::Holds;
use largesse_machine::{Bitmap, Topology};

/// A package, node or cache with the parts that it encloses, and the cores outside these parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopologyPart {
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Further description that is printed after the name: processors or bytes.
    pub(super) note: String,
    pub(super) cpus: Bitmap,
    pub(super) parts: Vec<TopologyPart>,
    /// Threads of each core, or single processors if cores are not known.
    pub(super) cores: Vec<Bitmap>,
}

/// The kind of a [`TopologyPart`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Package,
    Node,
    /// A cache of this level.
    Cache(u32),
    /// A placeholder for cores in no package, node or shared cache.
    Unknown,
}

impl TopologyPart {
    fn new(kind: Kind, name: String, note: String, cpus: &Bitmap) -> TopologyPart {
        TopologyPart { kind, name, note, cpus: cpus.clone(), parts: Vec::new(), cores: Vec::new() }
    }

    /// Moves a part or a core into the smallest part that holds all of its processors, or returns it if none does.
    fn take<T>(
        parts: &mut [TopologyPart],
        cpus: &Bitmap,
        new: T,
        put: fn(&mut TopologyPart, T),
    ) -> Option<T> {
        let Some(part) = parts.iter_mut().find(|part| cpus.is_within(&part.cpus)) else { return Some(new) };
        let level_below = TopologyPart::take(&mut part.parts, cpus, new, put);
        if let Some(new) = level_below {
            put(part, new);
        }
        None
    }
}

/// Returns the outermost parts; the last one, without a name, holds the cores that are in no other.
pub(super) fn parts(topology: &Topology) -> Vec<TopologyPart> {
    let packages = topology.packages.iter().enumerate().map(|(number, cpus)| {
        TopologyPart::new(Kind::Package, format!("package {number}"), format!("processors {cpus}"), cpus)
    });
    let nodes = topology.nodes.iter().filter(|node| topology.nodes_are_known && !node.cpus.is_empty());
    let nodes = nodes
        .map(|node| TopologyPart::new(Kind::Node, format!("node {}", node.number), memory(node), &node.cpus));
    let shared = topology.caches.iter().rev().filter(|cache| {
        let last = topology.data_cache(cache.cpus.first().unwrap_or(0), cache.level + 1).is_none();
        let is_of_data = cache.kind != Holds::Instructions && cache.level > 1;
        is_of_data && (last || !topology.cores.iter().any(|core| cache.cpus.is_within(core)))
    });
    let caches = shared
        .map(|cache| TopologyPart::new(Kind::Cache(cache.level), name(cache), String::new(), &cache.cpus));
    let mut all: Vec<TopologyPart> = packages.chain(nodes).chain(caches).collect();
    // The sort is stable: of equal sets, packages enclose nodes, and nodes enclose caches.
    all.sort_by_key(|part| std::cmp::Reverse(part.cpus.len()));
    let mut found: Vec<TopologyPart> = Vec::new();
    for part in all {
        let cpus = part.cpus.clone();
        let left = TopologyPart::take(&mut found, &cpus, part, |outer, inner| outer.parts.push(inner));
        found.extend(left);
    }
    let mut rest = TopologyPart::new(Kind::Unknown, String::new(), String::new(), &Bitmap::new());
    for core in units(topology) {
        rest.cores
            .extend(TopologyPart::take(&mut found, &core.clone(), core, |part, core| part.cores.push(core)));
    }
    sort(&mut found);
    found.extend((!rest.cores.is_empty()).then_some(rest));
    found
}

/// Returns the cores, and as cores of their own the processors whose core is not known.
fn units(topology: &Topology) -> Vec<Bitmap> {
    let alone = topology.online.iter().filter(|cpu| !topology.cores.iter().any(|core| core.contains(*cpu)));
    let mut units: Vec<Bitmap> = topology.cores.clone();
    units.extend(alone.map(|cpu| [cpu].into_iter().collect::<Bitmap>()));
    units.sort_by_key(Bitmap::first);
    units
}

fn sort(parts: &mut [TopologyPart]) {
    parts.sort_by_key(|part| part.cpus.first());
    parts.iter_mut().for_each(|part| sort(&mut part.parts));
}

#[cfg(test)]
mod tests {
    use super::*;
    use largesse_machine::topology::{Cache, NumaNode};
    use proptest::prelude::*;

    /// Splits the processors `0..count` into runs of consecutive ones: bit `n` of `cuts` says whether a run begins at
    /// processor `n`.
    fn runs(count: u32, cuts: u32) -> Vec<Bitmap> {
        let mut runs: Vec<Bitmap> = Vec::new();
        for cpu in 0..count {
            if runs.is_empty() || cuts >> cpu & 1 == 1 {
                runs.push(Bitmap::new());
            }
            if let Some(run) = runs.last_mut() {
                run.insert(cpu);
            }
        }
        runs
    }

    /// Returns a machine whose parts of one kind are nested in those of another: the cuts of each kind include those of
    /// the coarser kinds. `order` says which kind comes first; the cores are the finest.
    fn machine(count: u32, masks: [u32; 5], order: [usize; 4]) -> Topology {
        let mut cuts = [0; 4];
        let mut all = 0;
        for (kind, mask) in order.into_iter().zip(masks) {
            all |= mask;
            cuts[kind] = all;
        }
        let [packages, nodes, l3, l2] = cuts.map(|cuts| runs(count, cuts));
        let cache = |(place, (level, cpus)): (u64, (u32, Bitmap))| Cache {
            level,
            kind: Holds::Both,
            cpus,
            size: (place + 1) << 20,
            line: 64,
            ways: 16,
        };
        let levels = l2.into_iter().map(|cpus| (2, cpus)).chain(l3.into_iter().map(|cpus| (3, cpus)));
        let node = |(number, cpus): (u32, Bitmap)| NumaNode {
            number,
            cpus,
            memory: Some(1 << 30),
            free: Some(1 << 29),
            side_cache: 0,
            distances: Vec::new(),
        };
        Topology {
            online: (0..count).collect(),
            packages,
            dies: Vec::new(),
            cores: runs(count, all | masks[4]),
            kinds: Vec::new(),
            caches: (0..).zip(levels).map(cache).collect(),
            nodes: (0..).zip(nodes).map(node).collect(),
            nodes_are_known: true,
            unread: Vec::new(),
        }
    }

    /// Returns all parts, each with the processors of the cores in it and in the parts that it encloses.
    fn flat(parts: &[TopologyPart]) -> Vec<(&TopologyPart, Bitmap)> {
        let mut all = Vec::new();
        for part in parts {
            let inner = flat(&part.parts);
            let cores = part.cores.iter().flat_map(Bitmap::iter);
            let within = part.parts.iter().flat_map(|part| part.cpus.iter());
            let spans = cores.chain(within).collect();
            all.push((part, spans));
            all.extend(inner);
        }
        all
    }

    proptest! {
        #[test]
        fn shared_caches_are_drawn_once_and_span_their_processors(
            count in 1..24_u32,
            masks in any::<[u32; 5]>(),
            order in Just([0, 1, 2, 3]).prop_shuffle(),
        ) {
            let topology = machine(count, masks, order);
            let tree = parts(&topology);
            let drawn = flat(&tree);
            for cache in &topology.caches {
                let shared = cache.level == 3 || !topology.cores.iter().any(|core| cache.cpus.is_within(core));
                let found: Vec<_> = drawn.iter().filter(|(part, _)| part.name == name(cache)).collect();
                prop_assert_eq!(found.len(), usize::from(shared), "{} of {:?}", name(cache), topology);
                for (_, spans) in found {
                    prop_assert_eq!(spans, &cache.cpus, "{} of {:?}", name(cache), topology);
                }
            }
            for core in &topology.cores {
                let places = drawn.iter().filter(|(part, _)| part.cores.contains(core)).count();
                prop_assert_eq!(places, 1, "core {} of {:?}", core, topology);
            }
        }
    }
}
