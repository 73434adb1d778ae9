//! Tests `largesse bench far` with a small program and the library itself.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const BENCH: &str = env!("CARGO_BIN_EXE_largesse-bench");

/// Returns the command, which lies in the same folder as the engine: `cargo build -p largesse-cli`.
fn command() -> Command {
    Command::new(Path::new(BENCH).with_file_name("largesse"))
}

/// A temporary folder of benches, which is removed when dropped.
struct Benches(PathBuf);

impl Benches {
    /// Makes one bench of the small program in `mode`; prints why and returns `None` if there is no far memory here.
    fn new(mode: &str) -> Option<Benches> {
        let may = command().args(["run", "--local", "1M", "--far", "memory:", "--", "true"]).output();
        let may = may.expect("the command `largesse`, as `cargo build -p largesse-cli` makes it");
        if !may.status.success() {
            eprintln!("skipped: {}", String::from_utf8_lossy(&may.stderr).trim());
            return None;
        }
        let folder = std::env::temp_dir().join(format!("largesse-bench-{mode}-{}", std::process::id()));
        for part in ["definitions", "programs"] {
            std::fs::create_dir_all(folder.join(part)).unwrap();
        }
        let benches = Benches(folder);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/far/walk.c");
        let program = benches.0.join("programs/walk");
        let done = Command::new("cc").arg("-O1").arg("-o").arg(program).arg(source).output();
        if !done.is_ok_and(|done| done.status.success()) {
            eprintln!("skipped: no C compiler");
            return None;
        }
        let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../definitions/settings.toml");
        std::fs::copy(settings, benches.0.join("definitions/settings.toml")).unwrap();
        let definition = format!(
            r#"[[bench]]
            name = "walk"
            title = "a walk"
            comparison = "far"
            group = "walk"
            interpreter = []
            program = "walk"
            args = ["{mode}"]
            needs = "nothing"
            memory_mib = 20
            settings = ["stock", "largesse"]
            tolerance = 1e-8
            test = [{{ name = "walk", title = "a walk" }}]
            far = {{ local_percent = [50, 5], page_sizes = ["64K", "auto"] }}"#
        );
        std::fs::write(benches.0.join("definitions/far.toml"), definition).unwrap();
        Some(benches)
    }

    fn compared(&self, words: &[&str]) -> Output {
        self.comparing(words).output().unwrap()
    }

    fn comparing(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BENCH);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
            command.env_remove(name);
        }
        command.args(["far", "--programs"]).arg(&self.0).args(words);
        command
    }
}

impl Drop for Benches {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn cells_have_right_answers_and_evictions() {
    let Some(benches) = Benches::new("walks") else { return };
    let output = benches.compared(&["--runs", "2", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let footprint = of("footprint")[0]["bytes"].as_u64().unwrap();
    assert!((16 << 20..17 << 20).contains(&footprint), "{footprint}");
    // Stock twice, and two sizes at half of 16 MiB; 5 % of it is less than the minimum.
    let runs = of("run");
    assert_eq!(runs.len(), 2 * (2 + 2));
    for run in runs.iter().filter(|run| run["local_percent"] == 50) {
        assert_eq!(run["local_bytes"], footprint / 2);
        assert!(run["far"]["evictions"].as_u64().unwrap() > 1000, "nothing left: {run}");
    }
    let answers: Vec<_> = of("cell").iter().map(|cell| cell["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["right", "none", "right", "none"]);
    assert_eq!(of("best").len(), 1);
}

#[test]
fn other_answers_fail_the_bench() {
    let Some(benches) = Benches::new("lies") else { return };
    let output = benches.compared(&["--runs", "1"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.contains("WRONG: walk, 50% local, 64K"), "{said}");
}

#[test]
fn long_runs_are_stopped_without_failure() {
    let Some(benches) = Benches::new("idles") else { return };
    let output = benches.compared(&["--runs", "2", "--cap", "5"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let row = |name: &str| said.lines().find(|line| line.trim_start().starts_with(name)).unwrap().to_owned();
    assert!(row("64K").contains("> ") && !row("auto").contains("> "), "{said}");
}

/// Calls `look` until it returns a value, for ten seconds.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    std::iter::repeat_with(|| {
        std::thread::sleep(Duration::from_millis(10));
        look()
    })
    .take_while(|_| since.elapsed() < Duration::from_secs(10))
    .flatten()
    .next()
}

// This fails if the program does not ask for the signal.
#[test]
fn killed_benches_leave_no_program() {
    let Some(benches) = Benches::new("sleeps") else { return };
    let mut bench =
        benches.comparing(&["--runs", "1"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task/{0}/children", bench.id());
    let program = soon(|| {
        let all = std::fs::read_to_string(&children).ok()?;
        let is_ours =
            |id: &&str| std::fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|it| it.ends_with("walk"));
        all.split_whitespace().find(is_ours).map(str::to_owned)
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    let program = program.expect("no program");
    // The process does not exist any more, or is a zombie.
    let gone = soon(|| match std::fs::read_to_string(format!("/proc/{program}/stat")) {
        Ok(stat) => stat.contains(") Z ").then_some(()),
        Err(_) => Some(()),
    });
    assert!(gone.is_some(), "{program} is still running");
}

#[test]
fn meaningless_options_are_refused() {
    for (words, option) in
        [(["far", "--peers"], "--peers"), (["r", "--cap=5"], "--cap"), (["far", "--store=disk"], "--store")]
    {
        let output = Command::new(BENCH).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(option), "{}", text(&output.stderr));
    }
}

#[test]
fn full_disk_is_reported_once() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(BENCH).args(["r", "--list"]).stdout(full).stderr(Stdio::piped()).spawn();
    let output = output.unwrap().wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "largesse: standard output: No space left on device (os error 28)\n");
    assert_eq!(output.status.code(), Some(2));
}
