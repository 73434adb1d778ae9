//! Tests signal handlers of the program that use far memory while the interrupted thread is inside the library.

use largesse_tests::{Exit, Run, Stage, User, fault_engines, signal, users, wait_for_exit};
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::time::Duration;

/// Time after which a program that a signal should end is considered hung.
const DEADLINE: Duration = Duration::from_secs(60);

struct Signals {
    stage: Stage,
    program: PathBuf,
}

impl Signals {
    fn new() -> Option<Signals> {
        let stage = Stage::new();
        let program = stage.compiled("far_signals.c", &["-pthread"])?;
        Some(Signals { stage, program })
    }

    fn run(&self, user: User, way: &str, count: &str) -> Run<'_> {
        Run::new(&self.stage, &[&self.program]).arg(way).arg(count).as_user(user)
    }

    /// Runs the program with the argument `way` under every fault engine, as every user, until `count` signals have
    /// been handled.
    #[track_caller]
    fn check(&self, way: &str, count: &str) {
        for user in users() {
            for engine in fault_engines(user) {
                let options = ["--local=8M", "--far=memory:", "--fault-engine", engine];
                let ran = self.run(user, way, count).under(&options).finish();
                let ended = (ran.exit, ran.stdout.as_str());
                assert_eq!(
                    ended,
                    (Exit::Code(0), "working\n0 wrong\n"),
                    "{way} as {user:?}, {engine}: {ran:#?}"
                );
            }
        }
    }
}

#[test]
fn handlers_use_far_memory() {
    let Some(signals) = Signals::new() else { return };
    signals.check("timer", "100");
}

#[test]
fn signals_storm_on_threads() {
    let Some(signals) = Signals::new() else { return };
    signals.check("storm", "300");
}

#[test]
fn handlers_run_in_marked_regions() {
    let Some(signals) = Signals::new() else { return };
    signals.check("marked", "100");
}

#[test]
fn handlers_fork() {
    let Some(signals) = Signals::new() else { return };
    signals.check("fork", "40");
}

#[test]
fn forking_handlers_need_no_far_memory() {
    let Some(signals) = Signals::new() else { return };
    for user in users() {
        let ran = signals.run(user, "quick", "100").under(&[]).finish();
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(0), "working\n0 wrong\n"),
            "{user:?}: {ran:#?}"
        );
    }
}

#[test]
fn late_far_memory_meets_handlers() {
    let Some(signals) = Signals::new() else { return };
    for user in users() {
        let ran = signals.run(user, "late", "100").under(&[]).finish();
        assert_eq!(
            (ran.exit, ran.stdout.as_str()),
            (Exit::Code(0), "working\n0 wrong\n"),
            "{user:?}: {ran:#?}"
        );
        assert!(ran.report["far"]["evictions"].as_u64() > Some(0), "Nothing was far: {ran:#?}");
    }
}

#[test]
fn sigterm_ends_a_busy_program() {
    let Some(signals) = Signals::new() else { return };
    for user in users() {
        for engine in fault_engines(user) {
            let options = ["--local=8M", "--far=memory:", "--fault-engine", engine];
            let mut child = signals.run(user, "storm", "0").under(&options).start();
            let mut line = String::new();
            let read = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
            assert!(read.is_ok() && line == "working\n", "{user:?} {engine}: the program printed {line:?}.");
            signal(child.id(), libc::SIGTERM);
            let status = wait_for_exit(&mut child, DEADLINE);
            let ended_by = std::os::unix::process::ExitStatusExt::signal(&status);
            assert_eq!(ended_by, Some(libc::SIGTERM), "{user:?} {engine}: {status:?}");
        }
    }
}

/// The program leaves 40 reads of 256 KiB; half of local memory has room for 16 such buffers. Calls that go on keep
/// their pages, also in a forked child.
#[test]
fn only_calls_that_go_on_pin_pages() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("far_jumps.c", &["-pthread"]) else { return };
    let ways: [&[&str]; 6] =
        [&["jump"], &["jump", "onstack"], &["inner"], &["inner", "onstack"], &["cancel"], &["fork"]];
    for way in ways {
        let run = || way.iter().fold(Run::new(&stage, &[&program]), |run, word| run.arg(word));
        let alone = run().finish().succeeded();
        assert_eq!(alone.stdout, "524288\n", "{way:?}");
        for engine in ["user-mode", "thread"] {
            let options = ["--local=8M", "--far=memory:", "--page-size=4K", "--fault-engine", engine];
            let ran = run().under(&options).finish().succeeded();
            assert_eq!(ran.stdout, alone.stdout, "{way:?} {engine}");
        }
    }
}
