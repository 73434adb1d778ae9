//! Checks the topology that is read from each saved machine (`tests/machines/*.tree`, made by `save.sh`), and compares
//! it with hwloc's.
#![expect(clippy::disallowed_macros, reason = "absent programs are printed as skipped")]

mod common;

use common::{Unfolded, machines};
use largesse_machine::Topology;
use largesse_machine::topology::Holds;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Number of processors, packages, dies, cores, caches of level 1 (data), 2 and 3, and nodes.
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
    for cache in &seen.caches {
        assert!(!cache.cpus.is_empty(), "{name}: no processors in {cache:?}");
    }
    for (number, row) in rows {
        let node = seen.nodes.iter().find(|node| node.number == *number).unwrap();
        let distances: Vec<String> =
            node.distances.iter().map(|(_, distance)| distance.to_string()).collect();
        assert_eq!(distances.join(" "), *row, "{name}, node {number}");
    }
}

#[test]
fn virtual_machine_is_read() {
    check("virtual-machine", [2, 1, 1, 2, 2, 2, 1, 1], "0-1", &[(0, "10")]);
}

/// Reads a desktop with two kinds of cores: six with two threads, and eight with one, of which four share a cache.
#[test]
fn hybrid_socket_is_read() {
    check("one-socket-hybrid", [20, 1, 1, 14, 14, 8, 1, 1], "0-19", &[]);
    let tree = Unfolded::of("one-socket-hybrid");
    let seen = Topology::read(tree.root()).unwrap();
    let kib = |cpu| [1, 2, 3, 4].map(|level| seen.data_cache(cpu, level).map(|cache| cache.size >> 10));
    assert_eq!(kib(0), [Some(48), Some(1280), Some(24576), None]);
    assert_eq!(kib(19), [Some(32), Some(2048), Some(24576), None]);
    assert_eq!(kib(20), [None; 4]);
}

#[test]
fn two_sockets_are_read() {
    check("two-sockets", [16, 2, 2, 16, 16, 16, 2, 2], "0-15", &[(0, "10 21"), (1, "21 10")]);
}

/// Reads sockets of two dies whose nodes are at two distances, as in the HA8000 guide (Kuroda, 2008).
#[test]
fn eight_nodes_two_hops_are_read() {
    let rows = [(0, "10 16 16 22 16 22 16 22"), (73, "22 16 16 22 22 16 16 10")];
    check("eight-nodes-two-hops", [48, 4, 4, 48, 48, 48, 8, 8], "0-47", &rows);
}

#[test]
fn four_nodes_two_hops_are_read() {
    let rows = [(0, "10 16 22 16"), (1, "16 10 16 22")];
    check("four-nodes-two-hops", [16, 4, 4, 16, 16, 16, 4, 4], "0-15", &rows);
}

#[test]
fn aarch64_server_is_read() {
    check(
        "aarch64-four-nodes",
        [128, 2, 2, 128, 128, 128, 4, 4],
        "0-127",
        &[(0, "10 16 32 33"), (3, "33 32 16 10")],
    );
}

#[test]
fn aarch64_desktop_is_read() {
    check("aarch64-one-socket", [20, 1, 1, 20, 20, 20, 2, 1], "0-19", &[]);
}

#[test]
fn offline_processors_are_left_out() {
    check("node-0-without-memory", [17, 2, 2, 17, 17, 17, 2, 1], "4-20", &[]);
}

/// Reads sockets of two dies with two nodes each, an artificial machine of hwloc's authors.
#[test]
fn dies_in_sockets_are_read() {
    check("dies", [64, 4, 8, 32, 64, 32, 8, 16], "0-63", &[]);
}

/// Reads nodes that are memory of accelerators: it can be used, but no processor is near.
#[test]
fn nodes_without_processors_are_read() {
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
fn damaged_file_is_named() {
    let tree = Unfolded::of("two-sockets");
    let file = tree.root().join("sys/devices/system/node/node1/distance");
    std::fs::write(&file, "10 far").unwrap();
    let error = Topology::read(tree.root()).unwrap_err().to_string();
    assert_eq!(error, format!("{} contains '10 far', which is not understood", file.display()));
    let nothing = Topology::read("/nowhere".as_ref()).unwrap_err().to_string();
    assert!(nothing.starts_with("/nowhere/sys/devices/system/cpu/online: "), "{nothing}");
}

/// Checks that the only node has all memory of the machine, also memory added after the start, which Linux 6.18 in
/// Firecracker does not count in the node's own file.
#[test]
fn only_node_has_all_memory() {
    let tree = Unfolded::of("virtual-machine");
    let of_node = tree.root().join("sys/devices/system/node/node0/meminfo");
    std::fs::write(of_node, "Node 0 MemTotal: 11757784 kB\nNode 0 MemFree: 10050100 kB\n").unwrap();
    let seen = Topology::read(tree.root()).unwrap();
    assert_eq!(seen.node(0).unwrap().memory, Some(24_684_084 << 10));
}

/// Reads a kernel built without NUMA, which has no folder for nodes.
#[test]
fn missing_nodes_give_one_node() {
    let tree = Unfolded::of("virtual-machine");
    std::fs::remove_dir_all(tree.root().join("sys/devices/system/node")).unwrap();
    let seen = Topology::read(tree.root()).unwrap();
    assert_eq!(seen.node(0).unwrap().cpus, seen.online);
    assert_eq!(seen.node(0).unwrap().memory, Some(24_684_084 << 10));
}

#[test]
fn folders_replace_missing_lists() {
    check("no-lists", [12, 4, 4, 7, 7, 7, 4, 1], "0-1,3-4,6-12,15", &[]);
    check("itanium", [8, 4, 4, 8, 8, 8, 8, 2], "0-7", &[(0, "10 15"), (1, "15 10")]);
}

#[test]
fn module_cores_are_not_threads() {
    check("modules-of-two-cores", [64, 4, 4, 64, 64, 32, 8, 8], "0-63", &[]);
}

#[test]
fn unknown_parts_are_left_out() {
    check("online-alone", [32, 0, 0, 0, 0, 0, 0, 1], "0-31", &[]);
    check("threads-alone", [2, 0, 0, 1, 0, 0, 0, 1], "0-1", &[]);
    check("packages-alone", [4, 1, 1, 0, 0, 0, 0, 4], "0-3", &[]);
    check("s390", [20, 8, 8, 20, 0, 0, 0, 1], "0-19", &[]);
    for (name, known) in [("online-alone", false), ("s390", true), ("packages-alone", true)] {
        let seen = Topology::read(Unfolded::of(name).root()).unwrap();
        assert_eq!(seen.nodes_are_known, known, "{name}");
    }
}

#[test]
fn kinds_of_cores_are_named() {
    let kinds = |name: &str| -> Vec<String> {
        let seen = Topology::read(Unfolded::of(name).root()).unwrap();
        seen.kinds.iter().map(|kind| format!("{} {}", kind.name, kind.cpus)).collect()
    };
    assert_eq!(kinds("one-socket-hybrid"), ["performance 0-11", "efficiency 12-19"]);
    assert_eq!(kinds("aarch64-one-socket"), ["performance 5-9,15-19", "efficiency 0-4,10-14"]);
    assert_eq!(kinds("two-sockets"), [""; 0]);
    // The kernel's own names take precedence over clocks.
    let tree = Unfolded::of("one-socket-hybrid");
    for (file, list) in [("cpu_core", "0-9"), ("cpu_atom", "10-17"), ("cpu_lowpower", "18-19")] {
        let folder = tree.root().join("sys/devices").join(file);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("cpus"), format!("{list}\n")).unwrap();
    }
    let seen = Topology::read(tree.root()).unwrap();
    let named: Vec<_> = seen.kinds.iter().map(|kind| (kind.name, kind.cpus.to_string())).collect();
    let want = [("performance", "0-9"), ("efficiency", "10-17"), ("low power", "18-19")];
    assert_eq!(named, want.map(|(name, cpus)| (name, cpus.to_owned())));
}

/// Reads files that end with zeros, like some that hwloc's authors collected.
#[test]
fn trailing_zeros_are_ignored() {
    let tree = Unfolded::of("two-sockets");
    let before = Topology::read(tree.root()).unwrap();
    for file in
        ["cpu/online", "cpu/cpu3/topology/core_siblings", "cpu/cpu0/cache/index0/size", "node/node1/distance"]
    {
        let path = tree.root().join("sys/devices/system").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{text}\0\0")).unwrap();
    }
    assert_eq!(Topology::read(tree.root()).unwrap(), before);
}

/// Empties files one by one, which hwloc takes for missing.
#[test]
fn empty_files_count_as_missing() {
    for file in [
        "cpu/online",
        "cpu/cpu3/topology/core_siblings",
        "cpu/cpu3/topology/thread_siblings",
        "cpu/cpu3/topology/core_id",
        "cpu/cpu0/cache/index0/type",
        "cpu/cpu0/cache/index0/level",
        "cpu/cpu0/cache/index0/shared_cpu_map",
        "cpu/cpu0/cache/index0/size",
        "node/online",
        "node/node1/cpumap",
        "node/node1/distance",
        "node/node1/meminfo",
    ] {
        let tree = Unfolded::of("two-sockets");
        let path = tree.root().join("sys/devices/system").join(file);
        std::fs::remove_file(&path).unwrap();
        let missing = Topology::read(tree.root()).unwrap();
        for text in ["", "\n", "\0\0"] {
            std::fs::write(&path, text).unwrap();
            let empty =
                Topology::read(tree.root()).unwrap_or_else(|error| panic!("{file} {text:?}: {error}"));
            assert_eq!(empty, missing, "{file} {text:?}");
        }
    }
}

/// Replaces a file by a folder, which even root cannot read as a file.
#[test]
fn unreadable_files_are_named() {
    let tree = Unfolded::of("virtual-machine");
    let file = tree.root().join("sys/devices/system/cpu/cpu1/cache/index3/type");
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let seen = Topology::read(tree.root()).unwrap();
    assert_eq!((seen.unread, seen.cores.len()), (vec![file], 2));
}

#[test]
fn hwloc_agrees_on_saved_machines() {
    let Ok(version) = Command::new("lstopo-no-graphics").arg("--version").output() else {
        return println!("skipped: no lstopo-no-graphics (apt-get install hwloc-nox)");
    };
    assert!(version.status.success());
    for entry in std::fs::read_dir(machines()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        // hwloc detects modules of two cores by /proc/cpuinfo, which is not saved, and needs a topology.
        if path.extension().is_some_and(|it| it == "tree")
            && !["modules-of-two-cores", "online-alone"].contains(&name)
        {
            let tree = Unfolded::of(name);
            let ours = ours(&Topology::read(tree.root()).unwrap());
            let hwlocs = hwlocs(tree.root(), &ours);
            assert!(ours == hwlocs, "{name}\n{}", difference(&ours, &hwlocs));
        }
    }
}

/// Names of hwloc's archives that are read differently on purpose, and the reasons.
const DIFFERENT: [(&str, &str); 4] = [
    (
        "8em64t-2s2ca2c-buggynuma",
        "every distance is 10, also to other nodes: hwloc leaves them out, here they are shown",
    ),
    ("nvidiagpunumanodes", "hwloc leaves out the distances of nodes that are a GPU's memory"),
    ("fakeheterocpunuma", "nodes share processors: hwloc leaves out some of them, here they are shown"),
    (
        "40intel64-4n10c+pci-conflicts",
        "a processor contradicts others: hwloc leaves out both sets, here the first one counts",
    ),
];

/// Reads the machines in hwloc's archives, unpacked into subfolders of `LARGESSE_HWLOC_TREES` by `ci/hwloc.sh`, and
/// compares.
#[test]
fn hwloc_agrees_on_its_archives() {
    let Some(folder) = option_env!("LARGESSE_HWLOC_TREES") else {
        return println!("skipped: no archives of hwloc (ci/hwloc.sh)");
    };
    let (mut same, mut different) = (0, String::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ours =
            Topology::read(&path).map(|seen| ours(&seen)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let hwlocs = hwlocs(&path, &ours);
        let known = DIFFERENT.iter().find(|(known, _)| *known == name);
        match known {
            _ if ours == hwlocs => same += 1,
            Some((_, why)) => println!("{name} differs: {why}"),
            None => different += &format!("{name}\n{}", difference(&ours, &hwlocs)),
        }
    }
    println!("{same} machines are read as hwloc reads them");
    assert!(different.is_empty(), "{different}");
}

fn difference(ours: &BTreeSet<String>, hwlocs: &BTreeSet<String>) -> String {
    let here = ours.difference(hwlocs).map(|line| format!("  only here: {line}\n"));
    here.chain(hwlocs.difference(ours).map(|line| format!("  only hwloc: {line}\n"))).collect()
}

/// Returns a line of text for each package, die, core, cache, node and distance that Largesse found.
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
        lines.insert(format!("NUMANode {} {} {}", node.number, node.cpus, node.memory.unwrap_or(0)));
        if node.side_cache > 0 {
            lines.insert(format!("MemCache {} {}", node.cpus, node.side_cache));
        }
        let row = node.distances.iter().filter(|_| seen.nodes.len() > 1);
        lines.extend(row.map(|(to, distance)| format!("{} to {to}: {distance}", node.number)));
    }
    lines
}

/// Returns the lines of [`ours`] from the output of hwloc's `lstopo`. hwloc assigns the processors nearby to a node
/// that has none of its own. If `ours` has the node without processors, the line here has none either, so that the two
/// agree.
fn hwlocs(root: &Path, ours: &BTreeSet<String>) -> BTreeSet<String> {
    let output = Command::new("lstopo-no-graphics")
        .args([
            "--no-io",
            "--disallowed",
            "--filter",
            "icache:all",
            "--of",
            "xml",
            "--if",
            "fsroot",
            "--input",
        ])
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
                let number = value("os_index").unwrap();
                let bare = format!("NUMANode {number}  {memory}");
                let placed = format!("NUMANode {number} {} {memory}", set());
                lines.insert(if ours.contains(&bare) { bare } else { placed })
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

/// Parses a set of processors in hwloc's format: words of 32 bits with a prefix each, without words that are zero.
fn cpus(text: &str) -> largesse_machine::Bitmap {
    let words: Vec<String> =
        text.split(',').map(|word| format!("0{}", word.trim_start_matches("0x"))).collect();
    let words: Vec<String> =
        words.iter().map(|word| format!("{:0>8}", word.trim_start_matches('0'))).collect();
    largesse_machine::Bitmap::from_mask(&words.join(",")).unwrap()
}
