//! Tests programs that a process with far memory executes. They inherit its seccomp filter, which refuses direct
//! input.

use largesse_tests::{Exit, Run, Stage, fault_engines, has_program, users};

/// Checks that the program prints the same under each fault engine as alone, as root and as an ordinary user.
#[track_caller]
fn check(alone: &Run<'_>, children: &[&str]) {
    for user in users() {
        let without = alone.clone().as_user(user).finish();
        for engine in fault_engines(user) {
            for children in children {
                let options = ["--local=4M", "--fault-engine", engine, "--children", children];
                let with = alone.clone().as_user(user).under(&options).finish();
                assert_eq!(
                    (with.exit, &with.stdout),
                    (without.exit, &without.stdout),
                    "{user:?} with {options:?} differs from the program alone: {with:#?}"
                );
            }
        }
    }
}

#[test]
fn traced_vfork_child_executes() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("traced.c", &[]) else { return };
    for way in ["exec", "path", "missing", "fork"] {
        check(&Run::new(&stage, &[&program]).arg(way), &["off"]);
    }
    check(&Run::new(&stage, &[&program]).arg("exec"), &["on"]);
}

#[test]
fn debugger_runs_a_program() {
    if !has_program("gdb", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let Some(program) = stage.compiled("walk.c", &[]) else { return };
    let debugger = ["gdb", "-q", "-nx", "-batch", "-ex", "run", "--args"];
    for user in users() {
        for engine in fault_engines(user) {
            let run = Run::new(&stage, &debugger).arg(&program).arg("32").as_user(user);
            let ran = run.under(&["--local=24M", "--fault-engine", engine]).finish();
            assert_eq!(ran.exit, Exit::Code(0), "{user:?} with {engine}: the debugger ends: {ran:#?}");
            let right = ["sum 1044480\n", "exited normally]"].iter().all(|text| ran.stdout.contains(text));
            assert!(right, "{user:?} with {engine}: the program runs to its end: {ran:#?}");
        }
    }
}

#[test]
fn children_run_without_randomisation() {
    if !has_program("setarch", &["-R", "true"]) {
        return;
    }
    // Some children do not load the library, and one replaces its process by `exec`.
    let script = "/bin/true && echo one | cat && env -i /bin/echo two && (exec /bin/echo three) && \
                  nice /bin/echo four; /nowhere/program 2>&-; echo $?; exec /bin/echo five";
    let stage = Stage::new();
    let alone = Run::new(&stage, &["bash", "-c", script]).started_by(&["setarch", "-R"]);
    check(&alone, &["on", "off"]);
    // Here the program switches randomisation off; above, the launcher does.
    check(&Run::new(&stage, &["setarch", "-R", "bash", "-c", script]), &["on", "off"]);
}
