//! `/sys/devices/system/cpu` and `node`, as `Documentation/ABI/stable/sysfs-devices-system-cpu` has them.
//!
//! Masks are read, not lists: every kernel has them. Newer names come first (`core_cpus`, Linux 5.3),
//! then what they were called before (`thread_siblings`).

use super::{Cache, Holds, Node, Topology, Unreadable, Why};
use crate::Bitmap;
use std::io;
use std::path::{Path, PathBuf};

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";
/// No processor has more.
const MOST_CACHES: u32 = 32;

pub(super) fn topology(root: &Path) -> Result<Topology, Unreadable> {
    let files = Files { root };
    let online = files.list(&format!("{CPU}/online"))?;
    let mut found =
        Topology { online, packages: vec![], dies: vec![], cores: vec![], caches: vec![], nodes: vec![] };
    for cpu in found.online.iter() {
        let here = |names: &[&str]| files.group(cpu, names, &found.online);
        let core = here(&["core_cpus", "thread_siblings"])?.unwrap_or_else(|| [cpu].into_iter().collect());
        let package = here(&["package_cpus", "core_siblings"])?.unwrap_or_else(|| core.clone());
        // A kernel that knows none has a number for it that is none, and one processor on each.
        let no_die = files.text(&format!("{CPU}/cpu{cpu}/topology/die_id"))?.is_none_or(|id| id == "-1");
        let die = if no_die { None } else { here(&["die_cpus"])? }.unwrap_or_else(|| package.clone());
        for (set, sets) in [(package, &mut found.packages), (die, &mut found.dies), (core, &mut found.cores)]
        {
            add(sets, set);
        }
        for index in 0..MOST_CACHES {
            match files.cache(&format!("{CPU}/cpu{cpu}/cache/index{index}"), &found.online)? {
                Some(cache) => add(&mut found.caches, cache),
                None => break,
            }
        }
    }
    found.caches.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    found.nodes = files.nodes(&found.online)?;
    Ok(found)
}

fn add<T: PartialEq>(to: &mut Vec<T>, one: T) {
    if !to.contains(&one) {
        to.push(one);
    }
}

struct Files<'a> {
    root: &'a Path,
}

impl Files<'_> {
    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The text of a file; `None` when there is none.
    fn text(&self, path: &str) -> Result<Option<String>, Unreadable> {
        match std::fs::read_to_string(self.path(path)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Unreadable { path: self.path(path), why: Why::Io(error) }),
        }
    }

    fn list(&self, path: &str) -> Result<Bitmap, Unreadable> {
        let missing = || Unreadable { path: self.path(path), why: Why::Io(io::ErrorKind::NotFound.into()) };
        let text = self.text(path)?.ok_or_else(missing)?;
        text.parse().map_err(|_| self.unlike(path, &text))
    }

    fn mask(&self, path: &str) -> Result<Option<Bitmap>, Unreadable> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        Bitmap::from_mask(&text).map(Some).map_err(|_| self.unlike(path, &text))
    }

    /// A number, after which there may be a unit; 0 when there is no such file.
    fn number(&self, path: &str) -> Result<u64, Unreadable> {
        let Some(text) = self.text(path)? else { return Ok(0) };
        let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
        let scale = match unit.trim() {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return Err(self.unlike(path, &text)),
        };
        digits.parse::<u64>().map(|number| number * scale).map_err(|_| self.unlike(path, &text))
    }

    fn unlike(&self, path: &str, text: &str) -> Unreadable {
        Unreadable { path: self.path(path), why: Why::Text(text.to_owned()) }
    }

    /// The online processors that `cpu` shares something with, under the first name there is.
    fn group(&self, cpu: u32, names: &[&str], online: &Bitmap) -> Result<Option<Bitmap>, Unreadable> {
        for name in names {
            if let Some(set) = self.mask(&format!("{CPU}/cpu{cpu}/topology/{name}"))? {
                return Ok(Some(set.and(online)));
            }
        }
        Ok(None)
    }

    fn cache(&self, folder: &str, online: &Bitmap) -> Result<Option<Cache>, Unreadable> {
        let Some(kind) = self.text(&format!("{folder}/type"))? else { return Ok(None) };
        let kind = match kind.as_str() {
            "Data" => Holds::Data,
            "Instruction" => Holds::Instructions,
            "Unified" => Holds::Both,
            _ => return Err(self.unlike(&format!("{folder}/type"), &kind)),
        };
        let level = self.number(&format!("{folder}/level"))?;
        Ok(Some(Cache {
            level: u32::try_from(level)
                .map_err(|_| self.unlike(&format!("{folder}/level"), &level.to_string()))?,
            kind,
            cpus: self.mask(&format!("{folder}/shared_cpu_map"))?.unwrap_or_default().and(online),
            size: self.number(&format!("{folder}/size"))?,
            line: self.number(&format!("{folder}/coherency_line_size"))?,
            ways: self.number(&format!("{folder}/ways_of_associativity"))?,
        }))
    }

    /// The nodes; one of everything for a kernel that was built without NUMA.
    fn nodes(&self, online: &Bitmap) -> Result<Vec<Node>, Unreadable> {
        let all = self.text("proc/meminfo")?.unwrap_or_default();
        let [memory, free] = ["MemTotal:", "MemFree:"].map(|name| field(&all, name));
        if !self.path(&format!("{NODE}/online")).exists() {
            let (cpus, distances) = (online.clone(), vec![(0, 10)]);
            return Ok(vec![Node { number: 0, cpus, memory, free, distances }]);
        }
        let numbers = self.list(&format!("{NODE}/online"))?;
        let one = |number| self.node(number, &numbers, online);
        let mut nodes: Vec<Node> = numbers.iter().map(one).collect::<Result<_, _>>()?;
        // What a virtual machine was given after its start may be missing in its node (Linux 6.18 in Firecracker). A few pages
        // are no sign of that, and processors without a node may have memory of their own.
        if let [only] = &mut nodes[..]
            && only.cpus == *online
            && only.memory < memory / 16 * 15
        {
            (only.memory, only.free) = (memory, free);
        }
        Ok(nodes)
    }

    fn node(&self, number: u32, nodes: &Bitmap, online: &Bitmap) -> Result<Node, Unreadable> {
        let folder = format!("{NODE}/node{number}");
        let text = self.text(&format!("{folder}/meminfo"))?.unwrap_or_default();
        let row = self.text(&format!("{folder}/distance"))?.unwrap_or_default();
        let distances: Result<Vec<u32>, _> = row.split_whitespace().map(str::parse).collect();
        let distances = distances.map_err(|_| self.unlike(&format!("{folder}/distance"), &row))?;
        Ok(Node {
            number,
            cpus: self.mask(&format!("{folder}/cpumap"))?.unwrap_or_default().and(online),
            memory: field(&text, "MemTotal:"),
            free: field(&text, "MemFree:"),
            // The row has a number for each node that is online; of any other row nobody knows whose they are.
            distances: nodes
                .iter()
                .zip(distances.iter().copied())
                .filter(|_| distances.len() == nodes.len())
                .collect(),
        })
    }
}

/// Bytes from a line such as `Node 0 MemTotal: 24 kB` or `MemTotal: 24 kB`.
fn field(text: &str, name: &str) -> u64 {
    let after =
        |line: &str| line.split_whitespace().skip_while(|word| *word != name).nth(1)?.parse::<u64>().ok();
    text.lines().find_map(after).unwrap_or(0) << 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_with_and_without_the_node_before_it() {
        assert_eq!(field("Node 3 MemTotal:   24 kB\nNode 3 MemFree: 8 kB\n", "MemFree:"), 8 << 10);
        assert_eq!(field("MemTotal:  24 kB\n", "MemTotal:"), 24 << 10);
        assert_eq!(field("MemTotal:\n", "MemTotal:"), 0);
    }
}
