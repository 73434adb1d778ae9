//! Reads small files of the machine below a root folder, which tests replace.

use super::error::LaunchError;
use super::settings::{Node, Settings};
use largesse_machine::{Bitmap, unread};
use std::path::Path;

const NODES: &str = "sys/devices/system/node";

/// Refuses a NUMA node without memory.
pub(super) fn node_exists(root: &Path, settings: &Settings) -> Result<(), LaunchError> {
    let Node::Number(node) = settings.node else { return Ok(()) };
    let origin = settings.node_origin;
    let file = format!("{NODES}/has_memory");
    let has_memory = match unread::text(root, &file) {
        Ok(list) => list.map(|list| list.trim().to_owned()),
        // If the node does not exist, the kernel refuses it and the library counts the refusal.
        Err(_) => return Ok(()),
    };
    let Some(list) = has_memory.or_else(|| word(root, &format!("{NODES}/online"))) else {
        return if node == 0 { Ok(()) } else { Err(no_such_node(origin, node, "0")) };
    };
    if in_list(&list, node) { Ok(()) } else { Err(no_such_node(origin, node, &list)) }
}

fn no_such_node(origin: &'static str, node: u32, nodes: &str) -> LaunchError {
    let accepts = format!("a NUMA node that has memory, on this machine: {nodes}");
    largesse_far::FarError::BadValue { origin, value: node.to_string(), accepts }.into()
}

/// Returns whether `number` is in a list such as `0-3,8`; no number is in another text.
pub(super) fn in_list(list: &str, number: u32) -> bool {
    list.parse().is_ok_and(|numbers: Bitmap| numbers.contains(number))
}

/// Returns the text of a small file below `root` without surrounding white space, or `None` if it cannot be read.
pub(super) fn word(root: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(root.join(file)).ok().map(|text| text.trim().to_owned())
}

/// Returns the number in a small file below `root`.
pub(super) fn number(root: &Path, file: &str) -> Option<u64> {
    word(root, file)?.parse().ok()
}

/// Returns the text after `key:` in a file of such lines, as `/proc/meminfo`.
pub(super) fn field(root: &Path, file: &str, key: &str) -> Option<String> {
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_lists_are_parsed() {
        for (list, number, want) in
            [("0", 0, true), ("0-3,8", 3, true), ("0-3,8", 8, true), ("0-3,8", 4, false), ("", 0, false)]
        {
            assert_eq!(in_list(list, number), want, "{number} in {list}");
        }
    }
}
