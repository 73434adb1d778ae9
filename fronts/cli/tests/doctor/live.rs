//! The doctor on the machine that runs the tests, as whoever runs them and as nobody.

use crate::machine::{Machine, doctor};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

fn as_nobody(arguments: &[&str]) -> Option<Output> {
    // Build folders may be closed to others; a copy in a folder of its own is not.
    let place = Machine::new("virtual-machine");
    let program = place.root.join("largesse");
    fs::copy(env!("CARGO_BIN_EXE_largesse"), &program).unwrap();
    fs::set_permissions(&place.root, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups", "--no-new-privs"])
        .arg(&program)
        .arg("doctor")
        .args(arguments);
    let output = command.output().ok()?;
    // setpriv itself ends with 127 where it may not change the user.
    (output.status.code() != Some(127)).then_some(output)
}

#[test]
fn this_machine_is_described() {
    let output = doctor().arg("--json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["machine"]["memory"].as_u64().unwrap() > 0);
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(report["findings"].as_array().unwrap().len() > 10);
    assert!(matches!(output.status.code(), Some(0 | 1)));
}

#[test]
fn what_is_saved_is_described_the_same() {
    let place = Machine::new("virtual-machine");
    let to = place.root.join("copy");
    let here = doctor().arg("--json").arg("--save").arg(&to).output().unwrap();
    let there = doctor().arg("--json").arg("--root").arg(&to).output().unwrap();
    let ids = |output: &Output| {
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        findings.iter().map(|finding| format!("{} {}", finding["id"], finding["status"])).collect::<Vec<_>>()
    };
    assert_eq!(ids(&here), ids(&there));
}

#[test]
fn an_ordinary_user_gets_the_findings_and_the_commands() {
    let Some(output) = as_nobody(&["--json"]) else {
        println!("skipped: setpriv is missing or may not change the user here");
        return;
    };
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["machine"]["user"], 65534);
    let output = as_nobody(&["--fix"]).unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(said.starts_with("# Not root") || said.starts_with("Nothing to fix"), "{said}");
}

#[test]
fn a_wrong_option_ends_with_2() {
    for arguments in [
        &["--dry-run"][..],
        &["--yes"],
        &["--fix", "--undo"],
        &["--fix", "--json"],
        &["--hugetlb-pages", "4"],
        &["--fix", "--hugetlb-pages", "many"],
        &["--fix", "--hugetlb-pages", "-1"],
        &["--root", "/nowhere/at/all"],
    ] {
        let output = doctor().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
