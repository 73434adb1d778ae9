//! Tests of the doctor's findings on each saved machine.

use crate::machine::{ALL, SavedMachine, text};
use serde_json::Value;

fn findings(machine: &str) -> (i32, Vec<Value>) {
    let output = SavedMachine::new(machine).doctor(&["--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), report["findings"].as_array().unwrap().clone())
}

/// Checks the exit status, and the ids of all advice and problems.
#[track_caller]
fn check(machine: &str, exit: i32, want: &[(&str, &str)]) {
    let (code, findings) = findings(machine);
    let pair = |finding: &Value| {
        (finding["id"].as_str().unwrap().to_owned(), finding["status"].as_str().unwrap().to_owned())
    };
    let grave: Vec<(String, String)> =
        findings.iter().map(pair).filter(|(_, status)| status == "advice" || status == "problem").collect();
    let want: Vec<(String, String)> =
        want.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect();
    assert_eq!(grave, want);
    assert_eq!(code, exit);
}

#[track_caller]
fn check_now(machine: &str, id: &str, status: &str, now: &str) {
    let (_, findings) = findings(machine);
    let finding = findings.iter().find(|finding| finding["id"] == id).unwrap();
    assert_eq!((finding["status"].as_str().unwrap(), finding["now"].as_str().unwrap()), (status, now));
}

#[test]
fn machines_get_their_findings() {
    check("healthy", 0, &[]);
    check("virtual-machine", 0, &[("memlock", "advice"), ("userfaultfd", "advice")]);
    check(
        "thp-never",
        1,
        &[
            ("preload", "advice"),
            ("thp", "problem"),
            ("thp-defrag", "advice"),
            ("memlock", "advice"),
            ("userfaultfd", "advice"),
        ],
    );
    check("size-never", 1, &[("thp", "problem"), ("memlock", "advice"), ("userfaultfd", "advice")]);
    check(
        "container",
        1,
        &[
            ("thp", "problem"),
            ("memlock", "advice"),
            ("cgroup-memory", "advice"),
            ("cgroup-hugetlb-2MB", "advice"),
            ("mbind", "advice"),
            ("move_pages", "advice"),
            ("userfaultfd", "advice"),
        ],
    );
    check(
        "killing-filter",
        0,
        &[("memlock", "advice"), ("memfd_create", "advice"), ("userfaultfd", "advice")],
    );
    check("no-thp", 1, &[("thp", "problem"), ("memlock", "advice"), ("userfaultfd", "advice")]);
    check("pool", 0, &[("memlock", "advice"), ("userfaultfd", "advice")]);
    check(
        "empty-pool",
        1,
        &[
            ("hugetlb-2MiB", "advice"),
            ("memlock", "advice"),
            ("address-space", "problem"),
            ("userfaultfd", "advice"),
        ],
    );
    check(
        "strict",
        1,
        &[
            ("thp-prctl", "problem"),
            ("memlock", "advice"),
            ("overcommit", "advice"),
            ("map-count", "advice"),
            ("userfaultfd", "advice"),
        ],
    );
}

#[test]
fn findings_show_present_values() {
    check_now("container", "cgroup-memory", "advice", "4 GiB of the machine's 23.5 GiB, 3.8 GiB in use");
    check_now("container", "cgroup-memory-high", "info", "3 GiB");
    check_now("container", "container", "info", "Docker (/.dockerenv)");
    check_now("container", "userfaultfd", "advice", "forbidden, most likely by seccomp");
    check_now("killing-filter", "memfd_create", "advice", "forbidden by seccomp, which kills the caller");
    check_now("killing-filter", "cgroup-memory", "info", "2 GiB of the machine's 23.5 GiB, 1 MiB in use");
    check_now("killing-filter", "container", "info", "Kubernetes (/proc/1/cgroup)");
    check_now(
        "pool",
        "hugetlb-2MiB",
        "ok",
        "512 pages (1 GiB), 500 free, 4 reserved; free on node 0: 378, node 1: 122",
    );
    check_now("pool", "hugetlb-mount", "info", "/dev/hugepages (2M)");
    check_now("virtual-machine", "idle", "info", "idle processors halt at once");
    check_now("pool", "hugetlb-shm-group", "info", "group 50");
    check_now("pool", "shm", "info", "32 MiB");
    check_now("strict", "overcommit", "advice", "strict (2): 11.7 GiB of 11.7 GiB left");
    check_now("size-never", "thp-prctl", "ok", "disabled except where asked for");
    check_now("thp-never", "processors", "info", "1");
    check_now(
        "no-thp",
        "kernel",
        "info",
        "5.10.0-30-amd64, without MADV_POPULATE_WRITE, MADV_COLLAPSE, PAGEMAP_SCAN",
    );
    check_now("healthy", "userfaultfd", "ok", "/dev/userfaultfd opens");
}

#[test]
fn unknown_facts_are_called_unknown() {
    let machine = SavedMachine::new("healthy");
    for file in ["proc/self/status", "proc/meminfo"] {
        std::fs::remove_file(machine.root.join(file)).unwrap();
    }
    let text = String::from_utf8(machine.doctor(&[]).stdout).unwrap();
    assert!(text.contains("memory not known"), "{text}");
    assert!(text.contains("processors not known") && !text.contains(" core"), "{text}");
    let seen: serde_json::Value = serde_json::from_slice(&machine.doctor(&["--json"]).stdout).unwrap();
    assert!(seen["machine"]["memory"].is_null() && seen["machine"]["processors"].is_null(), "{seen:#}");
}

#[test]
fn advice_is_complete() {
    for machine in ALL {
        for finding in findings(machine).1 {
            if finding["status"] == "advice" || finding["status"] == "problem" {
                for part in ["now", "wanted", "why", "command"] {
                    assert!(finding[part].is_string(), "{machine}: {part} of {finding}");
                }
            }
        }
    }
}

#[test]
fn container_commands_name_host() {
    let (_, findings) = findings("container");
    let thp = findings.iter().find(|finding| finding["id"] == "thp").unwrap();
    assert!(thp["why"].as_str().unwrap().ends_with("the command is for the host"));
}

#[test]
fn table_fits_and_ends_in_summary() {
    for machine in ALL {
        let table = text(&SavedMachine::new(machine).doctor(&[]));
        assert!(!table.contains('\x1b'), "no colour in a pipe");
        let commands =
            |line: &str| line.trim_start().starts_with("type ") || line.trim_start().starts_with("$ ");
        for line in table.lines().filter(|line| !commands(line)) {
            assert!(line.chars().count() <= 100, "{machine}: {line}");
        }
        assert!(table.lines().last().unwrap().contains(" ok"), "{machine}");
    }
}
