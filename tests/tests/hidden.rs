//! The library asks the kernel for pages and nodes where the files that describe them are hidden.

use largesse_tests::{Ran, Run, Stage, large_pages_are_available, skipped};
use std::process::Command;

/// Runs a program with one block of 32 MiB and these options, while another mount hides a folder of the kernel.
fn ran(stage: &Stage, folder: &str, options: &[&str]) -> Option<Ran> {
    let program = stage.compiled("ends.c", &[])?;
    let empty = stage.scratch().join("empty");
    std::fs::create_dir_all(&empty).unwrap();
    let hide = format!("mount --bind {} {folder} && exec \"$@\"", empty.display());
    let prefix = ["unshare", "--mount", "sh", "-c", &hide, "sh"];
    let tried = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
    if !tried.is_ok_and(|done| done.status.success()) {
        skipped("no mounts of our own");
        return None;
    }
    Some(Run::new(stage, &[&program]).arg("exit").under(options).started_by(&prefix).input("go\n").finish())
}

#[test]
fn large_pages_are_given_where_their_files_are_hidden() {
    if !large_pages_are_available() {
        return skipped("this machine gives no large pages");
    }
    let stage = Stage::new();
    for folder in ["/sys", "/sys/kernel/mm", "/sys/kernel/mm/transparent_hugepage", "/sys/devices"] {
        let Some(ran) = ran(&stage, folder, &[]) else { return };
        assert_eq!(ran.hints, "", "without {folder}");
        let large = ran.report["large_peak_bytes"].as_u64();
        assert!(large >= Some(16 << 20), "without {folder}: {large:?} bytes on large pages");
        assert_eq!(ran.report["not_granted"], serde_json::json!({}), "without {folder}");
    }
}

#[test]
fn kernel_refuses_a_node_where_the_nodes_are_hidden() {
    if std::path::Path::new("/sys/devices/system/node/node77").exists() {
        return skipped("this machine has a node 77");
    }
    let stage = Stage::new();
    for folder in ["/sys/devices", "/sys/devices/system/node"] {
        let Some(ran) = ran(&stage, folder, &["--node=77"]) else { return };
        assert!(ran.not_granted("node-refused") > 0, "without {folder}: {ran:#?}");
    }
}
