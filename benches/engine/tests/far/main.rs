//! Tests `largesse bench far` with small programs, its library functions, and the kernel's swap.
#![expect(clippy::disallowed_macros, reason = "a test that cannot run here says so")]

use serde_json::Value;
use std::fs::read_to_string;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BENCH: &str = env!("CARGO_BIN_EXE_largesse-bench");
/// A folder on a disk, for swap files and stores.
const DISK: &str = "/var/tmp";

/// Only one test may use swap at a time.
static SWAP: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/far")
}

/// Returns the folder with the compiled program. Where far memory or a compiler is missing, returns `None` and prints
/// a message.
fn programs() -> Option<TempDir> {
    let far = ["run", "--local", "1M", "--far", "memory:", "--", "true"];
    let may = Command::new(Path::new(BENCH).with_file_name("largesse")).args(far).output();
    let may = may.expect("the command `largesse`, as `cargo build -p largesse-cli` makes it");
    let programs = tempfile::tempdir().unwrap();
    let (program, source) = (programs.path().join("walk"), root().join("programs/walk.c"));
    let made = Command::new("cc").arg("-O1").arg("-o").arg(program).arg(source).status();
    if may.status.success() && made.is_ok_and(|made| made.success()) {
        return Some(programs);
    }
    eprintln!("skipped: no C compiler, or {}", String::from_utf8_lossy(&may.stderr).trim());
    None
}

/// Returns the command that runs the far benches of this test, with `programs` as their folder.
fn bench(arguments: &[&str], programs: &Path) -> Command {
    let mut command = Command::new(BENCH);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LARGESSE_")) {
        command.env_remove(name);
    }
    command.arg("far").args(arguments).args(["--json", "--programs"]).arg(root()).env("PROGRAMS", programs);
    command
}

/// Returns the JSON objects that a bench printed.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'l>(kind: &str, lines: &'l [Value]) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

#[test]
fn cells_have_right_answers_and_evictions() {
    let Some(programs) = programs() else { return };
    let output = bench(&["--only", "walk", "--runs", "2", "--least"], programs.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = lines(&output);
    let footprint = of("footprint", &lines)[0]["bytes"].as_u64().unwrap();
    assert!((16 << 20..17 << 20).contains(&footprint), "{footprint}");
    // Stock twice, and two sizes at half of 16 MiB; 5 % of it is less than the minimum.
    let runs = of("run", &lines);
    assert_eq!(runs.len(), 2 * (2 + 2));
    for run in runs.iter().filter(|run| run["local_percent"] == 50) {
        assert_eq!(run["local_bytes"], footprint / 2);
        assert!(run["far"]["evictions"].as_u64().unwrap() > 1000, "nothing left: {run}");
    }
    let cells = of("cell", &lines);
    let answers: Vec<_> = cells.iter().map(|cell| &cell["answer"]).collect();
    assert_eq!(answers, ["right", "none", "right", "none"], "{cells:?}");
    assert_eq!(of("trouble", &lines), [&Value::Null; 0]);
    // Of the second walk, only what half of the memory keeps of the first one need not be fetched.
    for cell in cells.iter().filter(|cell| cell["local_percent"] == 50) {
        let least = cell["least_bytes"].as_f64().unwrap() / f64::from(8 << 20);
        assert!((0.95..1.1).contains(&least), "{cell}");
        assert!(cell["to_least"].as_f64().unwrap() >= 0.99, "{cell}");
    }
}

/// Returns the lock that allows the test to use swap. Where the bench may not switch swap on, returns `None` and
/// prints a message.
fn swap_lock() -> Option<MutexGuard<'static, ()>> {
    let lock = SWAP.lock().unwrap_or_else(PoisonError::into_inner);
    let output = bench(&["--peers", "swap,zram", "--only", "huge"], Path::new("/")).output().unwrap();
    if output.status.code() != Some(2) {
        return Some(lock);
    }
    eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
    None
}

/// Returns the swap areas, files and control groups that the bench with this process number has left behind.
fn left_of(bench: u32) -> Vec<String> {
    let swaps = read_to_string("/proc/swaps").unwrap();
    let mut left: Vec<String> = swaps.lines().skip(1).map(str::to_owned).collect();
    let groups =
        ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"].map(|root| format!("{root}/largesse-bench-{bench}"));
    let paths = [format!("{DISK}/largesse-swap-{bench}")].into_iter().chain(groups);
    left.extend(paths.filter(|path| Path::new(path).exists()));
    left
}

#[test]
fn peers_run_within_the_same_limit() {
    let (Some(programs), Some(_lock)) = (programs(), swap_lock()) else { return };
    let asked = ["--only", "walk", "--scale", "8", "--local", "50", "--runs", "1", "--peers", "swap,zram"];
    let bench = bench(&asked, programs.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = bench.id();
    let output = bench.wait_with_output().unwrap();
    assert_eq!((output.status.code(), left_of(id)), (Some(0), Vec::new()), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("swap to the new file /var/tmp/largesse-swap-") && said.contains("zram"), "{said}");
    let lines = lines(&output);
    let has_fio = Command::new("fio").arg("--version").output().is_ok();
    assert_eq!(of("device", &lines).len(), if has_fio { 7 } else { 0 }, "fio: {has_fio}");
    assert!(of("device", &lines).iter().all(|one| one["megabytes_per_second"].as_f64() > Some(1.0)));
    let cells = of("cell", &lines);
    assert_eq!(cells.len(), 3);
    for cell in cells {
        // Half of the data left, and came back for the walk.
        let (resident, read) = (cell["resident"].as_f64().unwrap(), cell["bytes_read"].as_u64().unwrap());
        assert_eq!(cell["answer"], "right", "{cell}");
        assert!(read > 48 << 20 && cell["bytes_written"].as_u64().unwrap() > 48 << 20, "{cell}");
        assert!(cell["peer"].is_string() || (0.2..=0.5).contains(&resident), "{cell}");
    }
}

/// Starts a bench, and returns it once its program sleeps with swap switched on.
fn with_swap_on(peer: &str) -> Child {
    let asked = ["--only", "holds", "--runs", "1", "--cap", "5", "--peers", peer];
    let mut command = bench(&asked, Path::new("/"));
    // A shell starts programs in the background with SIGINT ignored, and the tests may be such a program.
    // SAFETY: between fork and exec, only a call that is safe in a signal handler.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut bench = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = soon(|| {
        assert_eq!(bench.try_wait().unwrap(), None, "the bench has ended");
        let group = ["", "/memory"]
            .map(|root| format!("/sys/fs/cgroup{root}/largesse-bench-{}/cgroup.procs", bench.id()));
        let procs = group.iter().find_map(|path| read_to_string(path).ok())?;
        (!procs.is_empty() && read_to_string("/proc/swaps").unwrap().lines().count() > 1).then_some(())
    });
    sleeps.expect("swap is not switched on");
    bench
}

/// Calls `look` until it returns a value, for at most a minute.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(60) {
        if let found @ Some(_) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    None
}

// This fails if the guard does not read to the end of its requests, or obeys signals.
#[test]
fn swap_is_off_however_the_bench_ends() {
    let Some(_lock) = swap_lock() else { return };
    for signal in ["-KILL", "-TERM", "-INT"] {
        for peer in ["swap", "zram"] {
            let mut bench = with_swap_on(peer);
            // As a terminal does, the signal is sent to the guard, too, unless it is one that cannot be ignored.
            let all = read_to_string(format!("/proc/{0}/task/{0}/children", bench.id())).unwrap();
            let guards = all.split_whitespace().filter(|_| signal != "-KILL").map(str::to_owned);
            let ids: Vec<String> = guards.chain([bench.id().to_string()]).collect();
            assert!(Command::new("kill").arg(signal).args(&ids).status().unwrap().success());
            assert!(!bench.wait().unwrap().success(), "{signal}");
            let off = soon(|| left_of(bench.id()).is_empty().then_some(()));
            assert!(off.is_some(), "{signal} {peer}: {:?}", left_of(bench.id()));
        }
    }
}

// This fails if the bench leaves everything to the guard.
#[test]
fn killed_guard_leaves_no_swap() {
    let Some(_lock) = swap_lock() else { return };
    for peer in ["swap", "zram"] {
        let mut bench = with_swap_on(peer);
        let all = read_to_string(format!("/proc/{0}/task/{0}/children", bench.id())).unwrap();
        let is_guard = |id: &&str| {
            read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|it| it.contains("guard-swap"))
        };
        let guard = all.split_whitespace().find(is_guard).expect("a guard");
        assert!(Command::new("kill").args(["-KILL", guard]).status().unwrap().success());
        bench.wait().unwrap();
        assert_eq!(left_of(bench.id()), Vec::<String>::new(), "{peer}");
    }
}
