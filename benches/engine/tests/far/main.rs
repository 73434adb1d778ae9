//! Tests `largesse bench far` with a small program and the library itself.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BENCH: &str = env!("CARGO_BIN_EXE_largesse-bench");

/// Returns the command of the bench in `tests/far` without settings of the environment.
fn bench(words: &[&str], programs: &Path) -> Command {
    let mut command = Command::new(BENCH);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
        command.env_remove(name);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/far");
    command.args(["far", "--programs"]).arg(root).args(words).env("PROGRAMS", programs);
    command
}

/// Compiles the program into a folder. Prints why and returns `None` if there is no far memory or no compiler here.
fn programs() -> Option<tempfile::TempDir> {
    let far = ["run", "--local", "1M", "--far", "memory:", "--", "true"];
    let may = Command::new(Path::new(BENCH).with_file_name("largesse")).args(far).output();
    let may = may.expect("the command `largesse`, as `cargo build -p largesse-cli` makes it");
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/far/programs/walk.c");
    let made = Command::new("cc").arg("-O1").arg("-o").arg(folder.path().join("walk")).arg(source).status();
    let here = may.status.success() && made.is_ok_and(|made| made.success());
    if !here {
        eprintln!("skipped: no C compiler, or {}", String::from_utf8_lossy(&may.stderr).trim());
    }
    here.then_some(folder)
}

#[test]
fn cells_have_right_answers_and_evictions() {
    let Some(programs) = programs() else { return };
    let output = bench(&["--runs", "2", "--json"], programs.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let footprint = of("footprint")[0]["bytes"].as_u64().unwrap();
    assert!((16 << 20..17 << 20).contains(&footprint), "{footprint}");
    // Stock twice, and two sizes at half of 16 MiB; 5 % of it is less than the minimum.
    assert_eq!(of("run").len(), 2 * (2 + 2));
    for run in of("run").iter().filter(|run| run["local_percent"] == 50) {
        assert_eq!(run["local_bytes"], footprint / 2);
        assert!(run["far"]["evictions"].as_u64().unwrap() > 1000, "nothing left: {run}");
    }
    let answers: Vec<_> = of("cell").iter().map(|cell| cell["answer"].as_str().unwrap()).collect();
    assert_eq!((&answers[..], of("best").len()), (&["right", "none", "right", "none"][..], 1));
}

/// Calls `look` until it returns a value, for ten seconds.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
        if let found @ Some(_) = look() {
            return found;
        }
    }
    None
}

// This fails if the program does not ask for the signal.
#[test]
fn killed_benches_leave_no_program() {
    let Some(programs) = programs() else { return };
    let words = ["--runs", "1", "--only", "sleep"];
    let mut bench =
        bench(&words, programs.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
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
