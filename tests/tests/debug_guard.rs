//! The checked build of the library aborts when the library's own code calls the `malloc` that the library exports.

use largesse_tests::{Exit, Run, Stage, fault_engines, has_program, users, workspace};
use std::path::PathBuf;
use std::process::Command;

/// Returns a stage with the checked library, which `make` or this test has built.
fn checked() -> Stage {
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--profile", "preload-checked", "-p", "largesse-preload"])
        .args(["--message-format", "json"])
        .current_dir(workspace())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let artifacts = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut files = artifacts.filter_map(|artifact| artifact["filenames"][0].as_str().map(PathBuf::from));
    let library = files.rfind(|file| file.ends_with("liblargesse.so"));
    Stage::with_library(&library.expect("cargo names what it built"))
}

#[test]
fn library_code_that_calls_the_exported_malloc_aborts() {
    let stage = checked();
    let Some(program) = stage.compiled("recurse.c", &["-ldl"]) else { return };
    for user in users() {
        let ran = Run::new(&stage, &[&program]).as_user(user).under(&[]).finish();
        assert_eq!(ran.exit, Exit::Signal(libc::SIGABRT), "{user:?} {ran:#?}");
        assert!(ran.hints.contains("largesse's own code entered the exported malloc"), "{ran:#?}");
    }
}

#[test]
fn released_library_has_no_such_call() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("recurse.c", &["-ldl"]) else { return };
    let ran = Run::new(&stage, &[program]).under(&[]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), "no largesse_debug_recurse\n"), "{ran:#?}");
}

#[test]
fn programs_run_under_the_checked_library() {
    let stage = checked();
    let Some(threads) = stage.compiled("threads.c", &["-pthread"]) else { return };
    let Some(family) = stage.compiled("family.c", &[]) else { return };
    for user in users() {
        for mode in ["hand", "fork", "watch"] {
            let ran = Run::new(&stage, &[&threads]).arg(mode).as_user(user).under(&[]).finish();
            assert_eq!(
                (ran.exit, ran.stdout.as_str()),
                (Exit::Code(0), "every block was right\n"),
                "{ran:#?}"
            );
        }
    }
    let ran = Run::new(&stage, &[family]).under(&[]).finish();
    assert_eq!((ran.exit, ran.stdout.as_str()), (Exit::Code(0), "all as it should be\n"), "{ran:#?}");
    for (program, arguments) in [
        (
            "/usr/bin/python3",
            ["-c", "import json; print(len(bytearray(3000000)), sum(list(range(1000000))))"],
        ),
        ("Rscript", ["-e", "x <- sort(runif(1e6)); m <- crossprod(matrix(x[1:250000], 500)); cat(dim(m))"]),
    ] {
        if has_program(program, &["--version"]) {
            let run = Run::new(&stage, &[program]).arg(arguments[0]).arg(arguments[1]);
            let ran = run.under(&[]).finish().succeeded();
            assert!(ran.counter("allocations") > 0, "{ran:#?}");
        }
    }
}

#[test]
fn far_memory_runs_under_the_checked_library() {
    let stage = checked();
    let Some(paged) = stage.compiled("paged.c", &["-pthread"]) else { return };
    let Some(calls) = stage.compiled("far_calls.c", &["-pthread"]) else { return };
    for user in users() {
        for engine in fault_engines(user) {
            for store in stage.stores() {
                let far = ["--local=4M", "--fault-engine", engine, "--far", &store];
                let run = |run: Run<'_>| run.as_user(user).under(&far).finish().succeeded();
                let ran = run(Run::new(&stage, &[&paged]).arg("16").arg("2").arg("300"));
                assert_eq!(ran.stdout, "2097152 words, 0 wrong\n", "{user:?} {engine} {store}");
            }
            let least = ["--local=1M", "--fault-engine", engine, "--far=memory:"];
            let run = Run::new(&stage, &[&calls]).arg("1").arg("100").as_user(user).under(&least);
            assert_eq!(run.finish().succeeded().stdout, "0 failed\n", "{user:?} {engine}");
        }
    }
}
