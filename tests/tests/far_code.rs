//! Memory from which a program runs code that it has written is far memory with `--local`, and becomes far under
//! `--limit`.

use largesse_tests::{Run, Stage, fault_engines, users};

/// Checks that the program prints the same in each of its ways of mapping such memory, for every user and engine.
#[track_caller]
fn code_runs(bound: &str, least_evictions: u64) {
    let stage = Stage::new();
    let Some(program) = stage.compiled("code.c", &["-O2", "-pthread"]) else { return };
    let store = stage.store();
    for way in ["plain", "number"] {
        for user in users() {
            let run = || Run::new(&stage, &[&program]).arg(way).arg("80").as_user(user);
            let native = run().finish().succeeded();
            for &engine in fault_engines(user) {
                let options = [bound, "--far", &store, "--fault-engine", engine];
                let ran = run().under(&options).finish().succeeded();
                let (got, want) = ((&ran.stdout, &ran.stderr), (&native.stdout, &native.stderr));
                assert_eq!(got, want, "{way} {user:?} {engine}: {ran:#?}");
                let far = &ran.report["far"];
                assert!(
                    far["evictions"].as_u64() > Some(least_evictions),
                    "{way} {user:?} {engine}: {far:#}"
                );
            }
        }
    }
}

#[test]
fn code_runs_in_far_memory() {
    code_runs("--local=8M", 50_000);
}

#[test]
fn code_runs_near_a_limit() {
    code_runs("--limit=64M", 20_000);
}
