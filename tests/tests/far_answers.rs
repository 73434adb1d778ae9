//! Checks that system calls on far memory return the same under every fault engine as without Largesse.

use largesse_tests::{Exit, Run, Stage, fault_engines, users};

/// Checks that the program prints the same under Largesse as alone. It prints a line for each system call, and at
/// least `lines` lines.
#[track_caller]
fn check(program: &str, flags: &[&str], lines: usize) {
    let stage = Stage::new();
    let Some(program) = stage.compiled(program, flags) else { return };
    for user in users() {
        let alone = Run::new(&stage, &[&program]).as_user(user).finish().succeeded();
        let wanted: Vec<_> = alone.stdout.lines().collect();
        assert!(wanted.len() >= lines, "the program gave {} answers of {lines}", wanted.len());
        for engine in fault_engines(user) {
            let options = ["--local=1M", "--far=memory:", "--fault-engine", engine];
            let ran = Run::new(&stage, &[&program]).as_user(user).under(&options).finish();
            let got: Vec<_> = ran.stdout.lines().collect();
            for (number, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
                assert_eq!(got, wanted, "{user:?} {engine}: line {number}, on the left, is not the kernel's");
            }
            let last = got.last();
            assert_eq!(
                got.len(),
                wanted.len(),
                "{user:?} {engine}: no answer after {last:?}, {:?}",
                ran.exit
            );
            assert_eq!(ran.exit, Exit::Code(0), "{user:?} {engine}");
            let evictions = ran.report["far"]["evictions"].as_u64().unwrap_or(0);
            assert!(evictions > 10_000, "{user:?} {engine}: only {evictions} pages were evicted");
        }
    }
}

#[test]
fn bad_calls_get_the_kernels_answers() {
    check("far_bad_calls.c", &["-O1"], 6000);
}

#[test]
fn many_and_long_buffers_are_transferred_completely() {
    check("far_vectors.c", &["-O1", "-lpthread"], 300);
}

/// Every call of the filter's table must be made with bad pointers and on evicted pages.
#[test]
fn every_call_of_the_table_is_made() {
    let table = include_str!("../../fronts/preload/src/io/calls.rs");
    let program = include_str!("../programs/far_bad_calls.c");
    let table = table.split_once("const CALLS").and_then(|(_, rest)| rest.split_once("];")).unwrap().0;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let calls: Vec<_> =
        table.split("libc::SYS_").skip(1).map(|rest| rest.split(|c| !is_name(c)).next().unwrap()).collect();
    let is_made = |name: &&str| {
        program.contains(&format!("CALL({name},")) || program.contains(&format!("\"{name}\", SYS_{name},"))
    };
    let missing: Vec<_> = calls.iter().filter(|name| !is_made(name)).collect();
    assert!(calls.len() > 150 && missing.is_empty(), "{} calls, without {missing:?}", calls.len());
}
