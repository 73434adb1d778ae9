//! Checks that standard error, the report and `largesse status` agree on the requests that were not granted.

use largesse_tests::{Pool, Run, Stage, is_root, skipped};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

/// Everything that is said about a program with three blocks of 5 MiB: by `largesse status`, in the report, and on
/// standard error.
#[derive(Debug)]
struct Shown {
    status: Value,
    report: Value,
    stderr: String,
}

impl Shown {
    fn of(stage: &Stage, options: &[&str]) -> Option<Shown> {
        Shown::within(stage, &["env"], options, &["env"])
    }

    /// Runs the launcher by the words `outer`, and the program by the words `inner`, all of which replace themselves.
    fn within(stage: &Stage, outer: &[&str], options: &[&str], inner: &[&str]) -> Option<Shown> {
        let program = stage.compiled("limits.c", &[])?;
        let report = stage.scratch().join("report.json");
        let mut run = Command::new(outer[0]);
        run.args(&outer[1..]).arg(stage.command());
        run.arg("run").args(options).arg("--report").arg(&report).arg("--").args(inner).arg(program);
        // The helper would be refused more between the two readings.
        run.args(["waiting", "15", "5"])
            .env("LARGESSE_AHEAD", "off")
            .env("LARGESSE_LIBRARY", stage.library());
        let mut child = run
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("largesse");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let status =
            Command::new(stage.command()).args(["status", &child.id().to_string(), "--json"]).output();
        let status = serde_json::from_slice(&status.expect("largesse").stdout).unwrap_or_default();
        let done = child.wait_with_output().expect("an end");
        let report = std::fs::read(&report).expect("a report");
        Some(Shown {
            status,
            report: serde_json::from_slice(&report).expect("JSON"),
            stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
        })
    }

    /// Returns the causes that `largesse status` shows, with their counts.
    fn causes(&self) -> Vec<(String, u64)> {
        let all = self.status["not_granted"].as_array().cloned().unwrap_or_default();
        let cause =
            |it: &Value| (it["cause"].as_str().unwrap_or("?").to_owned(), it["count"].as_u64().unwrap_or(0));
        all.iter().map(cause).collect()
    }

    #[track_caller]
    fn check(&self, cause: &str, lines: usize) {
        let causes = self.causes();
        assert!(
            causes.iter().any(|(name, count)| name == cause && *count > 0),
            "{cause} is missing: {self:#?}"
        );
        for (name, count) in causes {
            assert_eq!(self.report["not_granted"][&name]["count"], count, "{name} in the report: {self:#?}");
        }
        assert_eq!(self.stderr.lines().count(), lines, "lines on standard error: {self:#?}");
    }
}

/// Returns whether the machine's pool of pages of this size exists and is empty.
fn pool_is_empty(kb: u32) -> bool {
    let file = format!("/sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages");
    std::fs::read_to_string(file).is_ok_and(|text| text.trim() == "0")
}

#[test]
fn missing_pages_are_named_everywhere() {
    if !is_root() {
        return skipped("largesse status needs the right to read other processes");
    }
    let stage = Stage::new();
    let Some(_pool) = Pool::of(0) else { return };
    let Some(shown) = Shown::of(&stage, &["--pages", "hugetlb"]) else { return };
    shown.check("hugetlb-pool-empty", 1);
    if pool_is_empty(1 << 20) {
        Shown::of(&stage, &["--pages", "hugetlb-1g"]).expect("compiled").check("hugetlb-pool-empty", 1);
    } else {
        skipped("no empty pool of 1 GiB pages");
    }
    let medium = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    if std::fs::read_to_string(medium).is_ok_and(|text| text.contains("[never]")) {
        let shown = Shown::of(&stage, &["--pages", "64k"]).expect("compiled");
        shown.check("64k-not-offered", 1);
        assert_eq!(shown.status["blocks"][0]["kind"], "4k", "{shown:#?}");
    } else {
        skipped("this machine offers 64 KiB pages");
    }
}

#[test]
fn refusals_in_a_script_are_named_once() {
    if !pool_is_empty(2048) {
        return skipped("no empty pool of 2 MiB pages");
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("limits.c", &[]) else { return };
    // The launcher does not know what the script will set, so it does not warn.
    let script = "export LARGESSE_PAGES=hugetlb; $0 dense 5 5; $0 dense 5 5; true";
    let ran = Run::new(&stage, &["sh".as_ref(), "-c".as_ref(), script.as_ref(), program.as_os_str()])
        .under(&[])
        .finish()
        .succeeded();
    assert_eq!(ran.hints.lines().count(), 1, "{ran:#?}");
    assert!(
        ran.hints.starts_with("largesse: limits.bin (process ")
            && ran.hints.contains("pool has too few free pages"),
        "{ran:#?}"
    );
}

#[test]
fn small_pool_is_named_at_the_first_block_without() {
    if !is_root() {
        return skipped("largesse status needs the right to read other processes");
    }
    let stage = Stage::new();
    let Some(_pool) = Pool::of(6) else { return };
    let Some(shown) = Shown::of(&stage, &["--pages", "hugetlb"]) else { return };
    shown.check("hugetlb-pool-empty", 1);
    assert!(shown.stderr.contains("pool has too few free pages"), "{shown:#?}");
    let blocks = shown.status["blocks"].as_array().expect("blocks");
    let kinds: Vec<&str> = blocks.iter().filter_map(|block| block["kind"].as_str()).collect();
    assert_eq!(
        kinds,
        ["hugetlb", "hugetlb", "hugetlb", "thp"],
        "the third block is on two kinds: {shown:#?}"
    );
    assert_eq!(shown.status["totals"]["blocks"], 3);
}

#[test]
fn c_sees_both_kinds_of_a_block() {
    const HUGETLB: u64 = 2;
    const THP: u64 = 1;
    const MIB: u64 = 1 << 20;
    let stage = Stage::new();
    let Some(program) = stage.compiled("kinds.c", &["-ldl"]) else { return };
    // The third block begins near 10 MiB of the heap's range, and the pool's pages end at 12.
    let Some(_pool) = Pool::of(6) else { return };
    let mut run = Command::new(stage.command());
    run.args(["run", "--pages", "hugetlb", "--"]).arg(program).env("LARGESSE_LIBRARY", stage.library());
    let output = run.output().expect("largesse");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Vec<u64>> = text
        .lines()
        .map(|line| line.split(' ').map(|word| word.parse().expect("a number")).collect())
        .collect();
    assert_eq!(lines.len(), 4, "{output:?}");
    assert_eq!(lines[..2], [vec![HUGETLB, 0, 0], vec![HUGETLB, 0, 0]], "{output:?}");
    assert_eq!(lines[2][..2], [HUGETLB, THP], "{output:?}");
    assert!((2 * MIB + 1..4 * MIB).contains(&lines[2][2]), "{output:?}");
    // Its second half begins behind the pool's pages.
    assert_eq!(lines[3], [THP, 0, 0], "{output:?}");
}

#[test]
fn refused_lock_and_node_are_named_everywhere() {
    if !is_root() {
        return skipped("largesse status needs the right to read other processes");
    }
    let stage = Stage::new();
    // The limit counts for a process without the capability only.
    let limited = ["prlimit", "--memlock=1048576", "setpriv", "--bounding-set=-ipc_lock"];
    let Some(shown) = Shown::within(&stage, &limited, &["--lock"], &["env"]) else { return };
    shown.check("lock-refused", 1);
    // The launcher would refuse a node that does not exist; the library asks the kernel for it.
    let shown = Shown::within(&stage, &["env"], &[], &["env", "LARGESSE_NODE=900"]).expect("compiled");
    shown.check("node-refused", 1);
    assert!(shown.stderr.contains("mbind was refused"), "{shown:#?}");
}
