//! Tests of the doctor on this machine, as the present user and as the user `nobody`.

use crate::machine::{SavedMachine, doctor};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

fn as_nobody(arguments: &[&str]) -> Option<Output> {
    // The build folder may be closed to other users; the copy's folder is not.
    let place = SavedMachine::new("virtual-machine");
    let program = place.root.join("largesse");
    // cp writes the copy: a child forked by another test would hold a file open that this process writes, so that it
    // could not be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_largesse")).arg(&program).status().ok()?;
    assert!(copied.success());
    fs::set_permissions(&place.root, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups", "--no-new-privs"])
        .arg(&program)
        .arg("doctor")
        .args(arguments);
    let output = command.output().ok()?;
    // setpriv itself exits with 127 if it may not change the user.
    (output.status.code() != Some(127)).then_some(output)
}

#[test]
fn live_machine_is_described() {
    let output = doctor().arg("--json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["machine"]["memory"].as_u64().unwrap() > 0);
    assert!(report["machine"]["processors"].as_u64().unwrap() > 0);
    assert_eq!(report["machine"]["cores"], report["machine"]["processors"], "the former name");
    assert!(report["findings"].as_array().unwrap().len() > 10);
    assert!(matches!(output.status.code(), Some(0 | 1)));
}

#[test]
fn saved_copy_gives_same_findings() {
    let place = SavedMachine::new("virtual-machine");
    let to = place.root.join("copy");
    let here = doctor().arg("--json").arg("--save").arg(&to).output().unwrap();
    let there = doctor().arg("--json").arg("--root").arg(&to).output().unwrap();
    let ids = |output: &Output| {
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        // A saved machine does not distinguish hidden files from absent ones.
        let known = findings.iter().filter(|finding| finding["now"] != "not known");
        known.map(|finding| format!("{} {}", finding["id"], finding["status"])).collect::<Vec<_>>()
    };
    assert_eq!(ids(&here), ids(&there));
}

#[test]
fn ordinary_user_gets_commands() {
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
fn wrong_options_exit_with_2() {
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

/// Runs the doctor after `prepare` in its process, and returns the exit status and the findings.
fn after(prepare: fn() -> libc::c_int) -> (Option<i32>, Vec<serde_json::Value>) {
    let mut command = doctor();
    command.arg("--json");
    let prepare = move || match prepare() {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    };
    // SAFETY: `prepare` makes only system calls, none of which needs a lock of the parent.
    let output = unsafe { command.pre_exec(prepare) }.output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), report["findings"].as_array().unwrap().clone())
}

fn finding<'a>(findings: &'a [serde_json::Value], id: &str) -> (&'a str, &'a str) {
    let finding = findings.iter().find(|finding| finding["id"] == id).unwrap();
    (finding["status"].as_str().unwrap(), finding["now"].as_str().unwrap())
}

#[test]
fn disabled_thp_is_reported() {
    let (code, findings) = after(|| {
        // SAFETY: takes no pointers.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) }
    });
    assert_eq!(finding(&findings, "thp-prctl").0, "problem");
    assert_eq!(code, Some(1));
}

#[test]
fn address_limit_is_reported() {
    let (code, findings) = after(|| {
        let limit = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
        // SAFETY: points to a whole `rlimit`.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }
    });
    assert_eq!(finding(&findings, "address-space"), ("problem", "1 GiB"));
    assert_eq!(code, Some(1));
}

#[test]
fn doctor_survives_system_call_filter() {
    let (code, findings) = after(filter);
    assert!(matches!(code, Some(0 | 1)));
    assert_eq!(finding(&findings, "seccomp").1, "filter on");
    assert_eq!(finding(&findings, "memfd_create").1, "forbidden by seccomp, which kills the caller");
    assert_eq!(finding(&findings, "mbind").1, "forbidden, most likely by seccomp");
    assert_eq!(finding(&findings, "move_pages").1, "missing, or hidden by seccomp");
}

/// Installs a filter that kills for one call, refuses another, and reports a third as missing.
fn filter() -> libc::c_int {
    let test = |call: libc::c_long, answer: u32| {
        let number = u32::try_from(call).unwrap_or(u32::MAX);
        // Falls through to the answer if the number matches, and skips it otherwise.
        let equal = libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: number };
        [equal, libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: answer }]
    };
    let errno = |errno: i32| libc::SECCOMP_RET_ERRNO | errno.unsigned_abs();
    let load = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let allow = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let [kill, killed] = test(libc::SYS_memfd_create, libc::SECCOMP_RET_KILL_PROCESS);
    let [refuse, refused] = test(libc::SYS_mbind, errno(libc::EPERM));
    let [hide, hidden] = test(libc::SYS_move_pages, errno(libc::ENOSYS));
    let mut lines = [load, kill, killed, refuse, refused, hide, hidden, allow];
    let program = libc::sock_fprog { len: 8, filter: lines.as_mut_ptr() };
    // SAFETY: takes no pointers.
    let rc = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    if rc != 0 {
        return rc;
    }
    // SAFETY: the program points to as many lines as it states, and the kernel copies them.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }
}
