//! A process ends with the program's last thread, although threads of the library still run.

use largesse_tests::{Exit, Ran, Run, Stage, fault_engines, skipped, users};
use std::process::Command;
use std::time::{Duration, Instant};

/// Arguments of `endings.c` that differ in how its threads end.
const THREADS: [&str; 6] = ["pthread_exit", "worker", "handled", "bare", "bare-first", "bare-worker"];
/// All other arguments of `endings.c`, each another way to end.
const OTHERS: [&str; 7] = ["cancel", "join", "term", "exit-in-worker", "fork", "fork-in-worker", "return"];

/// Size of the block that the program uses, in MiB.
const MIB: &str = "16";

/// Time within which a process must end, which takes milliseconds. On a busy machine the program itself takes a part.
const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a program that ends in this way, again if its exit status is not `wanted`. A thread that ends by the bare system
/// call is seen only by looking at all threads: on a busy machine the look may come too late to tell which thread was
/// the last one, and so which status counts. Of several runs, one is in time. Returns the last run, and what it took.
fn run(way: &str, wanted: Exit, program: &Run<'_>) -> (Ran, Duration) {
    let tries = if way.starts_with("bare") { 50 } else { 1 };
    let timed = || {
        let begun = Instant::now();
        (program.clone().finish(), begun.elapsed())
    };
    let mut last = timed();
    for _ in 1..tries {
        if last.0.exit == wanted {
            break;
        }
        last = timed();
    }
    last
}

/// Checks that a run ended in time, and as the run `without` the library did.
#[track_caller]
fn ends_alike(way: &str, with: &Ran, without: &Ran, took: Duration) {
    assert!(took < DEADLINE, "`{way}` took {took:?}: {with:#?}");
    let [with, without] = [with, without].map(|ran| (ran.exit, &ran.stdout));
    assert_eq!(with, without, "`{way}` ends as it does alone");
}

/// Checks that the program ends in each of the `ways` as it does alone: with the same status or signal, and the same
/// output, which exit handlers print, too.
#[track_caller]
fn check(ways: &[&str], options: &[&str], program: &Run<'_>, alone: &Run<'_>) {
    for way in ways {
        let without = alone.clone().arg(way).arg(MIB).finish();
        let (with, took) = run(way, without.exit, &program.clone().arg(way).arg(MIB).under(options));
        assert_eq!(with.exit, without.exit, "`{way}` under {options:?} ends as it does alone: {with:#?}");
        assert_eq!(with.stdout, without.stdout, "`{way}` under {options:?} prints what it prints alone");
        assert!(took < DEADLINE, "`{way}` under {options:?} took {took:?}");
        // Kernels before 6.15 do not always give the status to the process that watches the program.
        if let (Some(told), Exit::Code(code)) = (with.report["status"].as_i64(), with.exit) {
            assert_eq!(told, i64::from(code), "`{way}` under {options:?}: the report has the status");
        }
    }
}

#[test]
fn last_thread_ends_process() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("endings.c", &["-pthread", "-ldl"]) else { return };
    for user in users() {
        let alone = Run::new(&stage, &[&program]).as_user(user);
        let with_team = alone.clone().variable("OMP_NUM_THREADS", "2");
        check(&THREADS, &[], &with_team, &alone);
        check(&OTHERS, &[], &with_team, &alone);
        // Without the helper thread the library has only the threads that work on long vectors.
        check(&THREADS, &[], &with_team.variable("LARGESSE_AHEAD", "off"), &alone);
    }
}

/// The thread that loads the library is not the first one, and the threads that work on long vectors are started then.
/// `bare-first` is left out: the library looks at the first thread too rarely to see that it was not the last one.
#[test]
fn last_thread_ends_process_that_loads_the_library_late() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("endings.c", &["-pthread", "-ldl"]) else { return };
    let library = stage.library();
    for user in users() {
        let alone = Run::new(&stage, &[&program]).as_user(user);
        for way in THREADS.iter().chain(&OTHERS).filter(|way| **way != "bare-first") {
            let without = alone.clone().arg(way).arg(MIB).finish();
            let with = alone.clone().arg(way).arg(MIB).arg(&library).variable("OMP_NUM_THREADS", "2");
            let (with, took) = run(way, without.exit, &with);
            ends_alike(way, &with, &without, took);
        }
    }
}

/// Under a limit the program has far memory from the middle on, with all of its threads.
#[test]
fn last_thread_ends_process_beyond_its_limit() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("endings.c", &["-pthread", "-ldl"]) else { return };
    for user in users() {
        let alone = Run::new(&stage, &[&program]).as_user(user);
        for way in THREADS {
            let without = alone.clone().arg(way).arg("96").finish();
            let limited = alone.clone().arg(way).arg("96").under(&["--limit=64M"]);
            let (with, took) = run(way, without.exit, &limited);
            // The other ways end so suddenly that the line may be missing.
            let is_told = with.hints.contains("comes near its limit") || with.report["far"].is_object();
            assert!(is_told || !with.stdout.contains("exit handler"), "`{way}` has far memory: {with:#?}");
            ends_alike(way, &with, &without, took);
        }
    }
}

/// Without `/proc`, the library must rely on the C library's count of threads, which does not notice threads that end
/// by the bare system call. So the ways with such threads are left out.
#[test]
fn last_thread_ends_process_without_proc() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("endings.c", &["-pthread", "-ldl"]) else { return };
    let hide = format!("mount --bind {} /proc && exec \"$@\"", stage.scratch().display());
    let prefix = ["unshare", "--mount", "sh", "-c", &hide, "sh"];
    let tried = Command::new(prefix[0]).args(&prefix[1..]).arg("true").output();
    if !tried.is_ok_and(|done| done.status.success()) {
        return skipped("no mounts of our own");
    }
    let alone = Run::new(&stage, &[&program]);
    for options in [&[][..], &["--local=4M"]] {
        check(&["pthread_exit", "worker", "handled"], options, &alone.clone().started_by(&prefix), &alone);
    }
}

#[test]
fn last_thread_ends_process_with_far_memory() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("endings.c", &["-pthread", "-ldl"]) else { return };
    for user in users() {
        let alone = Run::new(&stage, &[&program]).as_user(user);
        for engine in fault_engines(user) {
            check(&THREADS, &["--local=4M", "--fault-engine", engine], &alone, &alone);
        }
        check(&OTHERS, &["--local=4M"], &alone, &alone);
    }
}
