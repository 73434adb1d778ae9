//! Reads the NUMA nodes and their memory.

use super::files::Files;
use super::model::NumaNode;
use super::unreadable::Unreadable;
use crate::Bitmap;

const NODE: &str = "sys/devices/system/node";

/// Returns the nodes, or a single one with all processors and memory if the kernel reports none.
pub(super) fn nodes(files: &Files<'_>, online: &Bitmap) -> Result<Vec<NumaNode>, Unreadable> {
    let all = files.text("proc/meminfo").unwrap_or_default();
    let [memory, free] = ["MemTotal:", "MemFree:"].map(|name| field(&all, name));
    // Before Linux 2.6.24 there are only folders.
    let numbers = match files.list(&format!("{NODE}/online"))? {
        Some(numbers) => numbers,
        None => files.numbered(NODE, "node"),
    };
    if numbers.is_empty() {
        let (cpus, distances) = (online.clone(), vec![(0, 10)]);
        return Ok(vec![NumaNode { number: 0, cpus, memory, free, side_cache: 0, distances }]);
    }
    let mut nodes: Vec<NumaNode> =
        numbers.iter().map(|number| node(files, number, &numbers, online)).collect::<Result<_, _>>()?;
    // Memory that a virtual machine got after its start may be missing in its node (Linux 6.18 in Firecracker). A
    // difference of a few pages does not show that, and processors without a node may have memory of their own.
    if let [only] = &mut nodes[..]
        && only.cpus == *online
        && only.memory < memory.map(|all| all / 16 * 15)
    {
        (only.memory, only.free) = (memory, free);
    }
    Ok(nodes)
}

/// Returns whether the kernel reports NUMA nodes. One that reports cores (`has_cores`) and no nodes was built without
/// NUMA: there is one node.
pub(super) fn are_known(files: &Files<'_>, has_cores: bool) -> bool {
    files.names(NODE).is_some() || has_cores && files.is_absent(NODE)
}

fn node(files: &Files<'_>, number: u32, nodes: &Bitmap, online: &Bitmap) -> Result<NumaNode, Unreadable> {
    let folder = format!("{NODE}/node{number}");
    let text = files.text(&format!("{folder}/meminfo")).unwrap_or_default();
    let row = files.text(&format!("{folder}/distance")).unwrap_or_default();
    let distances: Result<Vec<u32>, _> = row.split_whitespace().map(str::parse).collect();
    let distances = distances.map_err(|_| files.unlike(&format!("{folder}/distance"), &row))?;
    Ok(NumaNode {
        number,
        cpus: files.mask(&format!("{folder}/cpumap"))?.unwrap_or_default().and(online),
        memory: field(&text, "MemTotal:"),
        free: field(&text, "MemFree:"),
        side_cache: files.number(&format!("{folder}/memory_side_cache/index1/size"))?,
        // A row has a number for each online node; the numbers of a row of other length cannot be assigned to nodes.
        distances: nodes
            .iter()
            .zip(distances.iter().copied())
            .filter(|_| distances.len() == nodes.len())
            .collect(),
    })
}

/// Returns the number of bytes in a line such as `Node 0 MemTotal: 24 kB` or `MemTotal: 24 kB`, or `None` if there is
/// no line for `name`.
fn field(text: &str, name: &str) -> Option<u64> {
    let after =
        |line: &str| line.split_whitespace().skip_while(|word| *word != name).nth(1)?.parse::<u64>().ok();
    text.lines().find_map(after).map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_lines_are_read() {
        assert_eq!(field("Node 3 MemTotal:   24 kB\nNode 3 MemFree: 8 kB\n", "MemFree:"), Some(8 << 10));
        assert_eq!(field("MemTotal:  24 kB\n", "MemTotal:"), Some(24 << 10));
        assert_eq!(field("MemTotal:\n", "MemTotal:"), None);
    }
}
