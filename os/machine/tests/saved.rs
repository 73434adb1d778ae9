//! Saved machines (`tests/machines/*.tree`, made by `save.sh`): what is read from each, and whether hwloc reads the same.
#![expect(clippy::disallowed_macros, reason = "absent programs are printed as skipped")]

use largesse_machine::Topology;
use largesse_machine::topology::Holds;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a machine is, in numbers: processors, packages, dies, cores, caches of level 1 (data), 2 and 3, nodes.
type Count = [usize; 8];

#[track_caller]
fn check(name: &str, count: Count, online: &str, rows: &[(u32, &str)]) {
    let tree = Unfolded::of(name);
    let seen = Topology::read(tree.root()).unwrap();
    let caches = [1, 2, 3].map(|level| {
        seen.caches.iter().filter(|it| it.level == level && it.kind != Holds::Instructions).count()
    });
    let [first, second, third] = caches;
    let parts = [&seen.packages, &seen.dies, &seen.cores].map(Vec::len);
    let got = [seen.online.len(), parts[0], parts[1], parts[2], first, second, third, seen.nodes.len()];
    assert_eq!((got, seen.online.to_string().as_str()), (count, online), "{name}");
    for (number, row) in rows {
        let node = seen.nodes.iter().find(|node| node.number == *number).unwrap();
        let distances: Vec<String> =
            node.distances.iter().map(|(_, distance)| distance.to_string()).collect();
        assert_eq!(distances.join(" "), *row, "{name}, node {number}");
    }
}

#[test]
fn a_virtual_machine() {
    check("virtual-machine", [2, 1, 1, 2, 2, 2, 1, 1], "0-1", &[(0, "10")]);
}

/// A desktop: six cores with two threads, eight without, which share caches by four.
#[test]
fn one_socket_with_two_kinds_of_cores() {
    check("one-socket-hybrid", [20, 1, 1, 14, 14, 8, 1, 1], "0-19", &[]);
    let tree = Unfolded::of("one-socket-hybrid");
    let seen = Topology::read(tree.root()).unwrap();
    let kib = |cpu| [1, 2, 3, 4].map(|level| seen.data_cache(cpu, level).map(|cache| cache.size >> 10));
    assert_eq!(kib(0), [Some(48), Some(1280), Some(24576), None]);
    assert_eq!(kib(19), [Some(32), Some(2048), Some(24576), None]);
    assert_eq!(kib(20), [None; 4]);
}

#[test]
fn two_sockets() {
    check("two-sockets", [16, 2, 2, 16, 16, 16, 2, 2], "0-15", &[(0, "10 21"), (1, "21 10")]);
}

/// As in the article: from one node the others are at two distances.
#[test]
fn four_sockets_of_two_dies_where_some_nodes_are_two_hops_away() {
    let rows = [(0, "10 16 16 22 16 22 16 22"), (73, "22 16 16 22 22 16 16 10")];
    check("eight-nodes-two-hops", [48, 4, 4, 48, 48, 48, 8, 8], "0-47", &rows);
}

#[test]
fn four_sockets_as_in_the_article() {
    let rows = [(0, "10 16 22 16"), (1, "16 10 16 22")];
    check("four-nodes-two-hops", [16, 4, 4, 16, 16, 16, 4, 4], "0-15", &rows);
}

#[test]
fn aarch64_with_four_nodes() {
    check(
        "aarch64-four-nodes",
        [128, 2, 2, 128, 128, 128, 4, 4],
        "0-127",
        &[(0, "10 16 32 33"), (3, "33 32 16 10")],
    );
}

#[test]
fn aarch64_on_a_desk() {
    check("aarch64-one-socket", [20, 1, 1, 20, 20, 20, 2, 1], "0-19", &[]);
}

#[test]
fn processors_that_are_offline_belong_to_nothing() {
    check("node-0-without-memory", [17, 2, 2, 17, 17, 17, 2, 1], "4-20", &[]);
}

/// Sockets of two dies with two nodes each; hwloc's authors made it up.
#[test]
fn dies_within_sockets() {
    check("dies", [64, 4, 8, 32, 64, 32, 8, 16], "0-63", &[]);
}

/// Memory of accelerators: it can be used, and no processor is near.
#[test]
fn nodes_without_processors() {
    let tree = Unfolded::of("nodes-without-processors");
    let seen = Topology::read(tree.root()).unwrap();
    let bare: Vec<u32> =
        seen.nodes.iter().filter(|node| node.cpus.is_empty()).map(|node| node.number).collect();
    assert_eq!(bare, [250, 251, 252, 253, 254, 255]);
    assert_eq!(seen.nodes_with_memory().to_string(), "0,8,250-255");
    assert_eq!(seen.node(250).unwrap().distance_to(8), Some(80));
    assert_eq!(
        seen.node(1).unwrap_err().to_string(),
        "NUMA node 1 does not exist, or has no memory; with memory: 0,8,250-255"
    );
}

#[test]
fn a_damaged_file_is_named() {
    let tree = Unfolded::of("two-sockets");
    let file = tree.root().join("sys/devices/system/node/node1/distance");
    std::fs::write(&file, "10 far").unwrap();
    let error = Topology::read(tree.root()).unwrap_err().to_string();
    assert_eq!(error, format!("{} holds '10 far'", file.display()));
    let nothing = Topology::read("/nowhere".as_ref()).unwrap_err().to_string();
    assert!(nothing.starts_with("/nowhere/sys/devices/system/cpu/online: "), "{nothing}");
}

/// Linux 6.18 in Firecracker says so of memory that the machine was given after its start. Seen to fail with the node's own number.
#[test]
fn the_only_node_has_all_memory_also_what_was_added_later() {
    let tree = Unfolded::of("virtual-machine");
    let of_node = tree.root().join("sys/devices/system/node/node0/meminfo");
    std::fs::write(of_node, "Node 0 MemTotal: 11757784 kB\nNode 0 MemFree: 10050100 kB\n").unwrap();
    let seen = Topology::read(tree.root()).unwrap();
    assert_eq!(seen.node(0).unwrap().memory, 24_684_084 << 10);
}

/// A kernel that was built without NUMA has no folder for nodes.
#[test]
fn without_nodes_there_is_one_of_everything() {
    let tree = Unfolded::of("virtual-machine");
    std::fs::remove_dir_all(tree.root().join("sys/devices/system/node")).unwrap();
    let seen = Topology::read(tree.root()).unwrap();
    assert_eq!(seen.node(0).unwrap().cpus, seen.online);
    assert_eq!(seen.node(0).unwrap().memory, 24_684_084 << 10);
}

#[test]
fn hwloc_reads_the_same() {
    let Ok(version) = Command::new("lstopo-no-graphics").arg("--version").output() else {
        return println!("skipped: no lstopo-no-graphics (apt-get install hwloc-nox)");
    };
    assert!(version.status.success());
    for entry in std::fs::read_dir(machines()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "tree") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let tree = Unfolded::of(name);
            assert_eq!(ours(&Topology::read(tree.root()).unwrap()), hwlocs(tree.root()), "{name}");
        }
    }
}

/// One line for each thing, and one for each distance.
fn ours(seen: &Topology) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (name, sets) in [("Package", &seen.packages), ("Die", &seen.dies), ("Core", &seen.cores)] {
        // hwloc leaves out dies that are packages.
        let sets = sets.iter().filter(|set| name != "Die" || !seen.packages.contains(set));
        lines.extend(sets.map(|set| format!("{name} {set}")));
    }
    for cache in &seen.caches {
        let kind = if cache.kind == Holds::Instructions { "i" } else { "" };
        lines.insert(format!("L{}{kind}Cache {} {}", cache.level, cache.cpus, cache.size));
    }
    for node in &seen.nodes {
        lines.insert(format!("NUMANode {} {} {}", node.number, node.cpus, node.memory));
        let row = node.distances.iter().filter(|_| seen.nodes.len() > 1);
        lines.extend(row.map(|(to, distance)| format!("{} to {to}: {distance}", node.number)));
    }
    lines
}

/// The same lines from what `lstopo` writes.
fn hwlocs(root: &Path) -> BTreeSet<String> {
    let output = Command::new("lstopo-no-graphics")
        .args(["--no-io", "--filter", "icache:all", "--of", "xml", "--input"])
        .arg(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = BTreeSet::new();
    for tag in text.split('<').filter(|tag| tag.starts_with("object ")) {
        let value = |name: &str| {
            tag.split_once(&format!(" {name}=\"")).map(|(_, rest)| rest.split('"').next().unwrap())
        };
        let set = || cpus(value("cpuset").unwrap());
        match value("type").unwrap() {
            kind @ ("Package" | "Die" | "Core") => lines.insert(format!("{kind} {}", set())),
            kind if kind.ends_with("Cache") => {
                lines.insert(format!("{kind} {} {}", set(), value("cache_size").unwrap()))
            }
            "NUMANode" => {
                let memory = value("local_memory").unwrap_or("0");
                lines.insert(format!("NUMANode {} {} {memory}", value("os_index").unwrap(), set()))
            }
            _ => false,
        };
    }
    let words = |tag: &str| -> Vec<u32> {
        let open = format!("<{tag} ");
        let parts = text.split(&open).skip(1).map(|it| it.split(['>', '<']).nth(1).unwrap());
        parts.flat_map(str::split_whitespace).map(|word| word.parse().unwrap()).collect()
    };
    let (indexes, values) = (words("indexes"), words("u64values"));
    for (place, value) in values.iter().enumerate() {
        lines.insert(format!(
            "{} to {}: {value}",
            indexes[place / indexes.len()],
            indexes[place % indexes.len()]
        ));
    }
    lines
}

/// hwloc writes words of 32 with a prefix each, and leaves out those that are zero.
fn cpus(text: &str) -> largesse_machine::Bitmap {
    let words: Vec<String> =
        text.split(',').map(|word| format!("0{}", word.trim_start_matches("0x"))).collect();
    let words: Vec<String> =
        words.iter().map(|word| format!("{:0>8}", word.trim_start_matches('0'))).collect();
    largesse_machine::Bitmap::from_mask(&words.join(",")).unwrap()
}

fn machines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// A saved machine as files; removed when dropped.
struct Unfolded(PathBuf);

impl Unfolded {
    fn of(name: &str) -> Unfolded {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Thousands of small files: in memory where that can be had.
        let folder =
            Some(PathBuf::from("/dev/shm")).filter(|it| it.is_dir()).unwrap_or_else(std::env::temp_dir);
        let root = folder.join(format!("largesse-machine-{}-{number}", std::process::id()));
        let tree = Unfolded(root);
        let text = std::fs::read_to_string(machines().join(format!("{name}.tree"))).unwrap();
        for line in text.lines() {
            let (path, holds) = line.split_once('\t').unwrap();
            for path in unfold(path) {
                let (path, text) = (tree.0.join(path), format!("{}\n", holds.replace('|', "\n")));
                if std::fs::write(&path, &text).is_err() {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
            }
        }
        tree
    }

    fn root(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfolded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn unfold(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (numbers, after) = rest.split_once('}').unwrap();
    let numbers: largesse_machine::Bitmap = numbers.parse().unwrap();
    numbers.iter().map(|number| format!("{before}{number}{after}")).collect()
}
