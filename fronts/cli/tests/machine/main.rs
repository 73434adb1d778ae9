//! Tests of the command `largesse machine`.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

#[path = "../../../../os/machine/tests/common/mod.rs"]
mod common;

use common::Unfolded;
use serde_json::Value;
use std::process::{Command, Output};

fn machine(options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_largesse")).arg("machine").args(options).output().unwrap()
}

fn json(options: &[&str]) -> Value {
    let output = machine(options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(options: &[&str]) -> String {
    let output = machine(options);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn file(name: &str) -> String {
    std::fs::read_to_string(name).unwrap().trim().to_owned()
}

#[test]
fn shown_facts_are_the_kernels() {
    let seen = json(&["--json"]);
    assert_eq!(seen["online"], file("/sys/devices/system/cpu/online"));
    assert_eq!(seen["kernel"], file("/proc/sys/kernel/osrelease"));
    assert_eq!(seen["pages"]["base"], 4096);
    assert!(seen["nodes"][0]["bytes"].as_u64().unwrap() > 1 << 20, "{seen:#}");
    let here = &seen["here"];
    assert!(here["counter"]["hertz"].as_f64().unwrap() > 1e6, "{here:#}");
    assert!(here["core_clock"]["hertz"].as_f64().unwrap() > 1e8, "{here:#}");
    assert_eq!(seen["bandwidth"], Value::Null, "nothing is measured that was not asked for");
    let text = text(&[]);
    for words in ["package 0: processors ", "Caches\n", "base\n", "core clock ", "instructions "] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
}

#[test]
fn measurements_keep_bounds() {
    let seen = json(&["--json", "--bandwidth", "--latency", "--memory", "4M", "--seconds", "60"]);
    // Less memory than the caches hold is reported, not measured.
    let row = &seen["bandwidth"]["rows"][0];
    assert_eq!(row["why_not"], "less memory may be used than twice the caches", "{row:#}");
    let small = &seen["latency"][0];
    assert_eq!((small["pages"].as_str(), small["steps"].as_array().map(Vec::len)), (Some("4k"), Some(2)));
    for step in small["steps"].as_array().unwrap() {
        for way in ["chase", "gather"] {
            let ns = step[way]["best"].as_f64().unwrap();
            assert!(ns > 0.1 && ns < 1e6 && step[way]["impossible"] == false, "{step:#}");
        }
    }
    for pair in seen["cores_ns"].as_array().unwrap() {
        assert!(pair["round_trip"]["best"].as_f64().unwrap() > 1.0, "{pair:#}");
    }
}

#[test]
fn bandwidth_exceeding_caches_is_measured() {
    let available: u64 = file("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok())
        .unwrap();
    if available < 1 << 20 {
        return println!("skipped: less than 1 GiB of memory is available");
    }
    let seen = json(&["--json", "--bandwidth", "--memory", "192M", "--seconds", "300"]);
    let row = &seen["bandwidth"]["rows"][0];
    if row["why_not"] == "less memory may be used than twice the caches" {
        return println!("skipped: the caches of this machine are large");
    }
    assert_eq!(row["why_not"], Value::Null, "{row:#}");
    for figure in row["kernels"].as_array().unwrap() {
        assert!((0.01..1000.0).contains(&figure["best"].as_f64().unwrap()), "{row:#}");
    }
    assert!(row["first_touch"]["best"].as_f64().unwrap() > 0.0);
    let threads = seen["bandwidth"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["cpus"].as_array().unwrap().len() > 1);
    assert!(threads.clone().all(|row| row["round_trip"]["best"].as_f64().unwrap() > 1.0), "{seen:#}");
}

#[test]
fn missing_time_is_reported() {
    let text = text(&["--latency", "--bandwidth", "--seconds", "0"]);
    assert!(text.contains("4k: no time was left.") && text.contains("node 0: no time was left."), "{text}");
}

#[test]
fn picture_is_written_to_named_file() {
    let path = std::env::temp_dir().join(format!("largesse-machine-{}.svg", std::process::id()));
    let _ = text(&["--svg", path.to_str().unwrap(), "--latency", "--memory", "1M"]);
    let svg = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    for words in ["package 0", "NUMA node 0: ", "CPU 0", "Latency of one access"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn errors_are_reported() {
    for (options, words) in [
        (
            &["--memory", "lots"][..],
            "--memory lots is not a size; type a number with a unit, such as 512M or 4G",
        ),
        (
            &["--memory", "64"],
            "--memory 64 is 64 bytes without a unit, and the least is 1M; did you mean 64G or 64M?",
        ),
        (&["--memory", "1000T"], "of memory is available now"),
        (&["--root", "/nowhere"], "/nowhere/sys/devices/system/cpu/online: "),
        (&["--svg", "/nowhere/x.svg"], "--svg /nowhere/x.svg: "),
        (&["--root", "/", "--bandwidth"], "cannot be used with"),
    ] {
        let output = machine(options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(words), "{options:?}: {said}");
    }
}

/// Checks that a saved machine is shown without facts about this one.
#[test]
fn saved_machine_is_shown() {
    let saved = Unfolded::of("four-nodes-two-hops");
    let root = saved.root().to_str().unwrap();
    let text = text(&["--root", root]);
    assert!(text.contains("4 packages, 16 cores, 16 processors, 4 NUMA nodes"), "{text}");
    assert!(text.contains("from \\ to   0   1   2   3\n          0  10  16  22  16\n"), "{text}");
    assert!(!text.contains("This process"), "{text}");
    assert_eq!(json(&["--json", "--root", root])["here"], Value::Null);
}

#[track_caller]
fn shows(name: &str, lines: &[&str]) {
    let saved = Unfolded::of(name);
    let text = text(&["--root", saved.root().to_str().unwrap()]);
    let want = lines.join("\n");
    assert!(text.contains(&want), "{name}: no\n{want}\nin\n{text}");
}

#[test]
fn shared_caches_are_shown_once() {
    shows(
        "one-socket-hybrid",
        &[
            "package 0: processors 0-19",
            "  node 0: 30.9 GiB, 26.8 GiB free",
            "    L3 24 MiB: 0-1 | 2-3 | 4-5 | 6-7 | 8-9 | 10-11",
            "      L2 2 MiB: 12 | 13 | 14 | 15",
            "      L2 2 MiB: 16 | 17 | 18 | 19",
            "",
            "Kinds of cores",
            "  performance  6 cores   processors 0-11",
            "   efficiency  8 cores  processors 12-19",
        ],
    );
    shows(
        "memory-tiers",
        &["package 0: processors 0-5", "  L3 16 MiB", "    node 0: 2.8 GiB, 2.6 GiB free", "      0 | 1"],
    );
    shows(
        "memory-side-caches",
        &["    node 0: 370 GiB, 369 GiB free, behind a cache of 96 GiB\n      0,40 | 4,44 |"],
    );
    for (name, box_name, count) in [
        ("one-socket-hybrid", "L3 24 MiB", 1),
        ("memory-tiers", "L3 16 MiB", 1),
        ("one-socket-hybrid", "L2 2 MiB", 2),
    ] {
        let saved = Unfolded::of(name);
        let svg = saved.root().join("machine.svg");
        text(&["--root", saved.root().to_str().unwrap(), "--svg", svg.to_str().unwrap()]);
        let drawn = file(svg.to_str().unwrap());
        assert_eq!(drawn.matches(box_name).count(), count, "{name}: {box_name}");
    }
}

#[test]
fn unknown_parts_are_called_unknown() {
    let known = [
        "packages not known, cores not known, 32 processors, NUMA nodes not known, 62.5 GiB",
        "",
        "processors 0-31",
    ];
    shows("online-alone", &known);
    shows("online-alone", &["Caches", "  not known"]);
    shows("packages-alone", &["1 package, cores not known, 4 processors, 4 NUMA nodes"]);
    let saved = Unfolded::of("online-alone");
    let seen = json(&["--json", "--root", saved.root().to_str().unwrap()]);
    for name in ["packages", "dies", "cores", "caches", "nodes"] {
        assert_eq!(seen[name], Value::Null, "{name} of {seen:#}");
    }
    assert_eq!(seen["bytes"], 65_536_000_u64 << 10);
}

#[test]
fn unknown_sizes_are_called_unknown() {
    let saved = Unfolded::of("four-nodes-two-hops");
    let root = saved.root();
    for number in 0..4 {
        let index = format!("sys/devices/system/cpu/cpu{number}/cache/index3/size");
        let _ = std::fs::write(root.join(index), "\0\0");
    }
    std::fs::remove_file(root.join("sys/devices/system/node/node1/meminfo")).unwrap();
    let root = root.to_str().unwrap();
    let seen = text(&["--root", root]);
    for line in ["node 1: memory not known", "L3 of unknown size", ", memory not known\n"] {
        assert!(seen.contains(line), "{line} in {seen}");
    }
    assert!(!seen.contains("no memory") && !seen.contains("0 B"), "{seen}");
    let svg = saved.root().join("machine.svg");
    let seen = json(&["--root", root, "--json", "--svg", svg.to_str().unwrap()]);
    assert_eq!((&seen["nodes"][1]["bytes"], &seen["bytes"]), (&Value::Null, &Value::Null), "{seen:#}");
    assert!(seen["caches"].as_array().unwrap().iter().any(|it| it["bytes"].is_null()), "{seen:#}");
    assert!(file(svg.to_str().unwrap()).contains("NUMA node 1: memory not known"));
}

#[test]
fn zero_bytes_end_files_of_saved_machines() {
    let saved = Unfolded::of("online-alone");
    let mm = saved.root().join("sys/kernel/mm");
    let write = |path: &str, text: &str| {
        let path = saved.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.to_owned() + "\n\0\0\0").unwrap();
    };
    write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8");
    write("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "1");
    write("sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152");
    write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
    write("proc/sys/kernel/osrelease", "6.1.0");
    let seen = text(&["--root", saved.root().to_str().unwrap()]);
    for line in ["2 MiB  hugetlb pool: 8 pages, 1 free", "2 MiB  transparent: madvise", ", Linux 6.1.0\n"] {
        assert!(seen.contains(line), "{line} in {seen:?}");
    }
    std::fs::write(mm.join("hugepages/hugepages-2048kB/nr_hugepages"), "1").unwrap();
    std::fs::remove_file(mm.join("hugepages/hugepages-2048kB/free_hugepages")).unwrap();
    let seen = text(&["--root", saved.root().to_str().unwrap()]);
    assert!(seen.contains("hugetlb pool: 1 page, free ones not known"), "{seen}");
}

/// Checks that measurements use only the processors to which the caller is pinned.
#[test]
fn pinned_measurements_use_their_processors() {
    let permitted = json(&["--json"])["here"]["permitted_cpus"].as_str().unwrap().to_owned();
    let permitted: largesse_machine::Bitmap = permitted.parse().unwrap();
    let last = permitted.iter().last().unwrap();
    let pinned = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_largesse"));
        command.args(["pin", "--cpus", &last.to_string(), "--", env!("CARGO_BIN_EXE_largesse"), "machine"]);
        let output = command.args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let seen: Value =
        serde_json::from_str(&pinned(&["--json", "--bandwidth", "--latency", "--memory", "1M"])).unwrap();
    assert_eq!(seen["here"]["pinned_cpus"], last.to_string());
    for row in seen["bandwidth"]["rows"].as_array().unwrap() {
        assert_eq!(row["cpus"], serde_json::json!([last]), "{row:#}");
    }
    assert_eq!(seen["cores_ns"].as_array().unwrap().len(), 0, "one processor has no pair");
    if permitted.len() > 1 {
        let text = pinned(&[]);
        assert!(text.contains(&format!("processors {permitted}, pinned to {last}")), "{text}");
    }
}
