//! Describes caches, and the memory of NUMA nodes, in a few words.

use largesse_machine::topology::{Cache, Holds, NumaNode};
use largesse_terminal::size;

/// Returns the memory of a node and how much of it is free.
pub(super) fn memory(node: &NumaNode) -> String {
    match node.memory {
        0 => "no memory".into(),
        all if node.side_cache > 0 => {
            format!("{}, {} free, behind a cache of {}", size(all), size(node.free), size(node.side_cache))
        }
        all => format!("{}, {} free", size(all), size(node.free)),
    }
}

/// Returns the name of a cache, such as `L3 32.0 MiB`.
pub(super) fn name(cache: &Cache) -> String {
    let kind = match cache.kind {
        Holds::Data => "d",
        Holds::Instructions => "i",
        Holds::Both => "",
    };
    format!("L{}{kind} {}", cache.level, size(cache.size))
}
