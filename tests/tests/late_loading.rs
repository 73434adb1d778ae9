//! Tests the library when it is loaded into a process that is already running.

use largesse_tests::{Exit, Run, Stage, has_program, skipped, users};

#[test]
fn r_session_uses_the_heap_after_loading() {
    if !has_program("R", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let Some(shim) = stage.compiled("shim.c", &["-shared", "-fPIC"]) else { return };
    let named = stage.path("shim.so");
    std::fs::rename(shim, &named).unwrap();
    let script = stage.program("late.R");
    for user in users() {
        let words = ["Rscript".into(), "--vanilla".into(), script.clone(), stage.library(), named.clone()];
        let ran = Run::new(&stage, &words).as_user(user).finish();
        assert_eq!(ran.exit, Exit::Code(0), "{user:?} {ran:#?}");
        assert_eq!(ran.stdout, "as it should be\nfinalised\n", "{user:?} {ran:#?}");
    }
}

#[test]
fn second_load_in_a_launched_r_session_finds_the_first() {
    if !has_program("R", &["--version"]) {
        return;
    }
    let stage = Stage::new();
    let Some(shim) = stage.compiled("shim.c", &["-shared", "-fPIC"]) else { return };
    let named = stage.path("shim.so");
    std::fs::rename(shim, &named).unwrap();
    let script = "a <- commandArgs(TRUE); dyn.load(a[1], local = FALSE); dyn.load(a[2]); x <- numeric(1e6)
        f <- .C('facts', 0L, hooked = 0L, blocks = 0, 0, 0L); cat(.C('enable', 1L, r = 9L)$r, f$hooked, f$blocks > 0)";
    let words = ["Rscript".into(), "--vanilla".into(), "-e".into(), script.into(), stage.library(), named];
    let ran = Run::new(&stage, &words).under(&[]).finish().succeeded();
    assert_eq!(ran.stdout, "0 1 TRUE", "{ran:#?}");
}

#[test]
fn other_programs_are_refused_with_the_reason() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("late.c", &["-ldl"]) else { return };
    for user in users() {
        let ran = Run::new(&stage, &[program.clone(), stage.library()]).as_user(user).finish();
        assert_eq!(ran.exit, Exit::Code(0), "{ran:#?}");
        assert!(ran.stdout.starts_with("-2 ") && ran.stdout.contains("largesse run"), "{ran:#?}");
        assert!(ran.stdout.ends_with("still here 1\n"), "the library is never unloaded: {ran:#?}");
    }
}

/// The dynamic linker first finds an address of `malloc` that is the program's own stub, as in Debian's Python. The
/// allocator behind it is named all the same.
#[test]
fn other_allocator_behind_a_stub_is_named() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("late.c", &["-ldl", "-no-pie", "-fno-pie"]) else { return };
    let preload = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    if !std::path::Path::new(preload).exists() {
        skipped("no libjemalloc");
        return;
    }
    let ran = Run::new(&stage, &[program, stage.library()]).variable("LD_PRELOAD", preload).finish();
    assert!(ran.stdout.starts_with("-2 libjemalloc.so.2 brings its own malloc"), "{ran:#?}");
}

#[test]
fn program_with_a_sanitizer_is_refused() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("late.c", &["-ldl"]) else { return };
    let preload = "/usr/lib/x86_64-linux-gnu/libasan.so.8";
    if !std::path::Path::new(preload).exists() {
        skipped("no libasan");
        return;
    }
    let run = Run::new(&stage, &[program, stage.library()]).variable("LD_PRELOAD", preload);
    let ran = run.variable("ASAN_OPTIONS", "detect_leaks=0").finish();
    assert!(ran.stdout.starts_with("-2 the program is built with a sanitizer"), "{ran:#?}");
}
