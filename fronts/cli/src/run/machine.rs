//! What the machine says about itself, read below a root folder so that a test can bring its own.

use super::settings::{Node, Settings};
use super::error::Trouble;
use largesse_far::Error;
use largesse_machine::unread;
use std::path::Path;

const NODES: &str = "sys/devices/system/node";

/// Refuses a NUMA node that this machine has no memory on.
pub(super) fn node_exists(root: &Path, settings: &Settings) -> Result<(), Trouble> {
    let Node::Number(node) = settings.node else { return Ok(()) };
    let file = format!("{NODES}/has_memory");
    let has_memory = match unread::text(root, &file) {
        Ok(list) => list.map(|list| list.trim().to_owned()),
        // The kernel refuses a node that does not exist, and the library counts that.
        Err(_) => return Ok(()),
    };
    let Some(list) = has_memory.or_else(|| word(root, &format!("{NODES}/online"))) else {
        return if node == 0 { Ok(()) } else { Err(no_such_node(node, "0")) };
    };
    if in_list(&list, node) { Ok(()) } else { Err(no_such_node(node, &list)) }
}

fn no_such_node(node: u32, nodes: &str) -> Trouble {
    let accepts = format!("a NUMA node that has memory, on this machine: {nodes}");
    Error::BadValue { origin: "--node", value: node.to_string(), accepts }.into()
}

/// Whether `number` is in a list such as `0-3,8`.
pub(super) fn in_list(list: &str, number: u32) -> bool {
    list.split(',').any(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&number),
            _ => false,
        }
    })
}

/// The text of a small file below `root`, without the white space around it.
pub(super) fn word(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok().map(|text| text.trim().to_owned())
}

/// The number in a small file below `root`.
pub(super) fn number(root: &Path, file: &str) -> Option<u64> {
    word(root, file)?.parse().ok()
}

/// The number on the line that starts with `key`, in a file such as `/proc/meminfo`.
pub(super) fn field(root: &Path, file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_nodes_is_read_as_the_kernel_writes_it() {
        for (list, number, want) in
            [("0", 0, true), ("0-3,8", 3, true), ("0-3,8", 8, true), ("0-3,8", 4, false), ("", 0, false)]
        {
            assert_eq!(in_list(list, number), want, "{number} in {list}");
        }
    }
}
