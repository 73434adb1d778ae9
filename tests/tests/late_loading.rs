//! The library is loaded into a process that runs already.

use largesse_tests::{Exit, Run, Stage, has_program, skipped, users};

#[test]
fn an_r_session_is_served_from_then_on() {
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
fn in_an_r_session_that_was_launched_a_second_load_finds_the_first() {
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
fn any_other_program_is_told_why_it_is_not_served() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("late.c", &["-ldl"]) else { return };
    for user in users() {
        let ran = Run::new(&stage, &[program.clone(), stage.library()]).as_user(user).finish();
        assert_eq!(ran.exit, Exit::Code(0), "{ran:#?}");
        assert!(ran.stdout.starts_with("-2 ") && ran.stdout.contains("largesse run"), "{ran:#?}");
        assert!(ran.stdout.ends_with("still here 1\n"), "the library is never unloaded: {ran:#?}");
    }
}

#[test]
fn a_program_with_a_sanitizer_is_left_alone() {
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
