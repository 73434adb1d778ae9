//! Tests `largesse status`, which describes running programs from another process.

use largesse_tests::{
    Run, Stage, User, has_program, is_root, large_pages_are_available, skipped, users, wait_until,
};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::Child;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Starts a program and waits for its first line. The program ends when its standard input is closed.
fn started(run: &Run<'_>) -> Child {
    let mut child = run.start();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "the program printed nothing");
    child
}

fn ended(mut child: Child) {
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Returns what `largesse status --json` prints about a child, when it is run by this user.
#[track_caller]
fn shown(stage: &Stage, child: &Child, user: User) -> Value {
    let words = [stage.command(), "status".into(), child.id().to_string().into(), "--json".into()];
    let ran = Run::new(stage, &words).as_user(user).finish().succeeded();
    serde_json::from_str(&ran.stdout).unwrap()
}

fn sizes(shown: &Value) -> Vec<u64> {
    let blocks = shown["blocks"].as_array().unwrap();
    let mut sizes: Vec<u64> = blocks.iter().map(|block| block["size"].as_u64().unwrap()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn touched_block_is_on_large_pages_for_every_user() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("blocks.c", &["-ldl"]) else { return };
    for user in users() {
        let child = started(&Run::new(&stage, &[&program]).arg("wait").as_user(user).under(&[]));
        let shown = shown(&stage, &child, user);
        ended(child);
        assert_eq!(sizes(&shown), [3 * MIB, 64 * MIB], "{shown:#}");
        if !large_pages_are_available() {
            continue;
        }
        if shown["exact"] != true {
            skipped("this kernel does not say which pages are large");
            continue;
        }
        let blocks = shown["blocks"].as_array().unwrap();
        let big = blocks.iter().find(|block| block["size"] == 64 * MIB).unwrap();
        let large = big["large_bytes"].as_u64().unwrap();
        assert!(large * 10 > 9 * 64 * MIB, "{user:?}: only {large} bytes are on large pages\n{shown:#}");
    }
}

/// Free memory is returned to the kernel even if the program makes no more requests.
#[test]
fn idle_program_returns_free_memory() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors < 2 {
        skipped("the helper thread needs a second processor");
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("blocks.c", &["-ldl"]) else { return };
    let child = started(&Run::new(&stage, &[&program]).arg("idle").under(&[]));
    let pid = child.id();
    let mib = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    let most = mib("VmHWM:");
    assert!(most >= 60, "64 MiB were touched and freed, {most} MiB were resident");
    wait_until("less than 32 MiB are resident", Duration::from_secs(90), || mib("VmRSS:") < 32);
    ended(child);
}

#[test]
fn vectors_of_an_r_session_are_shown() {
    if !has_program("Rscript", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "x <- numeric(4e6); x[] <- 1; cat('ready\\n'); invisible(readLines(file('stdin')))";
    for user in users() {
        let child =
            started(&Run::new(&stage, &["Rscript", "--vanilla", "-e", script]).as_user(user).under(&[]));
        let shown = shown(&stage, &child, user);
        ended(child);
        assert_eq!(shown["header"], 48, "{shown:#}");
        assert!(sizes(&shown).contains(&(32_000_000 + 48)), "{shown:#}");
    }
}

#[test]
fn arrays_of_a_python_program_are_shown() {
    if !has_program("/usr/bin/python3", &["-c", "import numpy"]) {
        return;
    }
    let stage = Stage::new();
    let script = "import numpy, sys\nx = numpy.ones(4000000)\nprint('ready', flush=True)\nsys.stdin.read()";
    for user in users() {
        let child = started(&Run::new(&stage, &["/usr/bin/python3", "-c", script]).as_user(user).under(&[]));
        let shown = shown(&stage, &child, user);
        ended(child);
        assert_eq!(shown["header"], 0, "{shown:#}");
        assert!(sizes(&shown).contains(&32_000_000), "{shown:#}");
    }
}

#[test]
fn program_of_another_user_is_refused_with_a_message() {
    if !is_root() {
        skipped("only root can become two users");
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("blocks.c", &["-ldl"]) else { return };
    let child = started(&Run::new(&stage, &[&program]).arg("wait").under(&[]));
    let words = [stage.command(), "status".into(), child.id().to_string().into()];
    let ran = Run::new(&stage, &words).as_user(User::Unprivileged).finish();
    ended(child);
    assert_ne!(ran.exit, largesse_tests::Exit::Code(0), "{ran:#?}");
    assert!(format!("{}{}", ran.hints, ran.stderr).contains("may not be looked at"), "{ran:#?}");
}

#[test]
fn forked_child_is_described_by_its_own_heap() {
    if !has_program("/usr/bin/python3", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let script = "import os, sys\nx = bytearray(8000000)\nr, w = os.pipe()\npid = os.fork()\n\
        if pid == 0:\n    del x\n    y = bytearray(5000000)\n    os.write(w, b'x')\n    os.read(0, 1)\n    os._exit(0)\n\
        os.read(r, 1)\nopen('child', 'w').write(str(pid))\nprint('ready', flush=True)\nsys.stdin.read()\nos.waitpid(pid, 0)";
    let child = started(&Run::new(&stage, &["/usr/bin/python3", "-c", script]).under(&[]));
    let pid = std::fs::read_to_string(stage.scratch().join("child")).unwrap();
    let words = [stage.command(), "status".into(), pid.into(), "--json".into()];
    let of_child: Value =
        serde_json::from_str(&Run::new(&stage, &words).finish().succeeded().stdout).unwrap();
    let of_parent = shown(&stage, &child, User::Current);
    ended(child);
    let large = |shown: &Value| sizes(shown).into_iter().filter(|&size| size > MIB).collect::<Vec<_>>();
    assert_eq!(large(&of_parent), [8_000_001], "{of_parent:#}");
    assert_eq!(large(&of_child), [5_000_001], "{of_child:#}");
}
