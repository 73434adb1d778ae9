//! Tests of the command `largesse status` on a program that publishes a report as the library does.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

mod hostile;
mod real;

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const MIB: u64 = 1 << 20;

/// A running program, which is ended, waited for and removed when dropped.
struct TargetProcess {
    child: Child,
    folder: PathBuf,
}

impl TargetProcess {
    /// Starts the program in this mode, or prints the reason and returns `None` without a compiler.
    fn start(mode: &str) -> Option<TargetProcess> {
        TargetProcess::started(&target(), |program| {
            let mut command = Command::new(program);
            command.arg(mode);
            command
        })
    }

    /// Compiles `source` and starts the command that `with` makes of the program, which must print "ready" and wait
    /// for the end of its input.
    fn started(source: &str, with: impl Fn(&Path) -> Command) -> Option<TargetProcess> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("largesse-status-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let Some(program) = compiled(&folder, "target", source, &["-O0"]) else {
            let _ = std::fs::remove_dir_all(&folder);
            return None;
        };
        let mut child = with(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Some(TargetProcess { child, folder })
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }
}

impl Drop for TargetProcess {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Returns `target.c` for the present layout of reports.
fn target() -> String {
    let (version, size) = (largesse_report::VERSION, size_of::<largesse_report::HeapReport>());
    let program = include_str!("target.c");
    format!("#define REPORT_VERSION {version}\n#define REPORT_SIZE {size}\n{program}")
}

fn compiled(folder: &Path, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let (program, text) = (folder.join(name), folder.join(format!("{name}.c")));
    std::fs::write(&text, source).unwrap();
    let Ok(done) = Command::new("cc").args(options).arg("-o").arg(&program).arg(&text).output() else {
        eprintln!("skipped: no C compiler");
        return None;
    };
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

fn status(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_largesse")).arg("status").args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(arguments: &[&str], words: &str) {
    let output = status(arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains(words) && output.stdout.is_empty(), "{message}");
}

#[test]
fn blocks_show_their_residency() {
    let Some(target) = TargetProcess::start("good") else { return };
    let output = status(&[&target.pid(), "--json"]);
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["pid"], target.child.id());
    assert_eq!(shown["pages"], "auto");
    assert_eq!(shown["node"], "first-touch");
    assert_eq!(shown["hooked"], "preloaded");
    let blocks = shown["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 2);
    assert_eq!((&blocks[0]["kind"], &blocks[0]["size"]), (&"thp".into(), &(4 * MIB).into()));
    assert_eq!((&blocks[1]["kind"], &blocks[1]["size"]), (&"4k".into(), &(2 * MIB).into()));
    assert_eq!(shown["totals"]["bytes"], 6 * MIB);
    assert_eq!(shown["counters"]["reused"], 5);
    assert_eq!(shown["not_granted"][0]["cause"], "hugetlb-pool-empty");
    assert_eq!(shown["not_granted"][0]["count"], 3);
    // The second advised mapping is unmapped.
    assert_eq!(shown["advised"].as_array().unwrap().len(), 1);
    if shown["exact"] != true {
        eprintln!("skipped: this kernel does not say which pages are large ones");
        return;
    }
    assert_eq!(blocks[0]["resident_bytes"], 4 * MIB);
    assert_eq!(blocks[1]["resident_bytes"], MIB);
    assert_eq!(blocks[1]["large_bytes"], 0);
    // If large pages are off or used up, both numbers are zero.
    assert_eq!(blocks[0]["large_bytes"].as_u64(), Some(huge_kb(&target) * 1024));
}

/// Returns the KiB on huge pages of a process according to another kernel file.
fn huge_kb(target: &TargetProcess) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", target.pid())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn table_agrees_with_json() {
    let Some(target) = TargetProcess::start("good") else { return };
    let text = stdout(&status(&[&target.pid()]));
    for words in
        ["4 MiB", "2 blocks", "6 MiB", "blocks from 256 KiB", "header 48", "sysctl vm.nr_hugepages=N"]
    {
        assert!(text.contains(words), "no '{words}' in:\n{text}");
    }
}

#[test]
fn all_processes_are_listed() {
    let Some(target) = TargetProcess::start("good") else { return };
    let found: Value = serde_json::from_slice(&status(&["--json"]).stdout).unwrap();
    let mine = found["processes"].as_array().unwrap().iter().find(|one| one["pid"] == target.child.id());
    assert_eq!(mine.unwrap()["bytes"], 6 * MIB);
    let text = stdout(&status(&[]));
    assert!(text.contains(&target.pid()) && text.contains("target good"), "{text}");
}

#[test]
fn absent_process_is_reported() {
    refused(&["2147483647"], "there is no process 2147483647");
    assert_eq!(status(&["0"]).status.code(), Some(2));
    assert_eq!(status(&["R"]).status.code(), Some(2));
}

#[test]
fn unserved_process_names_run() {
    let Some(target) = TargetProcess::start("quiet") else { return };
    refused(&[&target.pid()], "was not started with largesse run");
}

#[test]
fn library_without_block_is_no_error() {
    let target = TargetProcess::started(&target(), |program| {
        let source = "unsigned largesse_version(void) { return 1; }";
        let folder = program.parent().unwrap();
        let library = compiled(folder, "liblargesse.so", source, &["-shared", "-fPIC"]).unwrap();
        let mut command = Command::new(program);
        command.arg("quiet").env("LD_PRELOAD", library);
        command
    });
    let Some(target) = target else { return };
    let output = status(&[&target.pid()]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("no large block yet"), "{}", stdout(&output));
    let shown: Value = serde_json::from_slice(&status(&[&target.pid(), "--json"]).stdout).unwrap();
    assert_eq!(shown["blocks"], Value::Array(Vec::new()));
}

#[test]
fn lying_and_newer_targets_are_refused() {
    let Some(target) = TargetProcess::start("lying") else { return };
    refused(&[&target.pid()], "its report is damaged: the number of slots");
    let Some(target) = TargetProcess::start("newer") else { return };
    refused(&[&target.pid()], "reports of version 99");
}

#[test]
fn other_users_process_is_refused() {
    // SAFETY: takes nothing, and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: only root can become two users");
        return;
    }
    let Some(target) = TargetProcess::start("good") else { return };
    // The command may be in a folder that only root can enter; a copy in /tmp is not.
    let copy = std::env::temp_dir().join(format!("largesse-status-{}", std::process::id()));
    // cp writes the copy: a child forked by another test would hold a file open that this process writes, so that it
    // could not be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_largesse")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let output = Command::new(&copy).args(["status", &target.pid()]).uid(65534).gid(65534).output().unwrap();
    std::fs::remove_file(&copy).unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("may not be looked at: only the same user, or root"), "{message}");
}
