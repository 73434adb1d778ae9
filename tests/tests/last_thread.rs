//! A process ends with the program's last thread, although threads of the library still run.

use largesse_tests::{Exit, Run, Stage, fault_engines, skipped, users};
use std::process::Command;
use std::time::{Duration, Instant};

/// Arguments of `endings.c` that differ in how its threads end.
const THREADS: [&str; 6] = ["pthread_exit", "worker", "handled", "bare", "bare-first", "bare-worker"];
/// All other arguments of `endings.c`, each another way to end.
const OTHERS: [&str; 7] = ["cancel", "join", "term", "exit-in-worker", "fork", "fork-in-worker", "return"];

/// Time within which a process must end. On a busy machine the program itself takes a part of it.
const DEADLINE: Duration = Duration::from_secs(10);

/// Checks that the program ends in each of the `ways` as it does alone: with the same status or signal, and the same
/// output, which exit handlers print, too.
#[track_caller]
fn check(ways: &[&str], options: &[&str], program: &Run<'_>, alone: &Run<'_>) {
    for way in ways {
        let without = alone.clone().arg(way).finish();
        let begun = Instant::now();
        let with = program.clone().arg(way).under(options).finish();
        let took = begun.elapsed();
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
