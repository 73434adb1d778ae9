//! Describes caches, and the memory of NUMA nodes, in a few words.

use largesse_machine::Topology;
use largesse_machine::topology::{Cache, Holds, NumaNode};
use largesse_terminal::size;

/// Returns the memory of a node and how much of it is free.
pub(super) fn memory(node: &NumaNode) -> String {
    let all = match node.memory {
        None => return "memory not known".into(),
        Some(0) => return "no memory".into(),
        Some(all) => size(all),
    };
    let free = node.free.map_or("free memory not known".into(), |free| format!("{} free", size(free)));
    let cache = if node.side_cache > 0 {
        format!(", behind a cache of {}", size(node.side_cache))
    } else {
        String::new()
    };
    format!("{all}, {free}{cache}")
}

/// Returns the memory of all nodes in bytes, or `None` if that of a node is not known.
pub(super) fn whole_memory(topology: &Topology) -> Option<u64> {
    topology.nodes.iter().map(|node| node.memory).sum()
}

/// Returns the name of a cache, such as `L3 32.0 MiB`.
pub(super) fn name(cache: &Cache) -> String {
    let kind = match cache.kind {
        Holds::Data => "d",
        Holds::Instructions => "i",
        Holds::Both => "",
    };
    let bytes = if cache.size == 0 { "of unknown size".into() } else { size(cache.size) };
    format!("L{}{kind} {bytes}", cache.level)
}
