//! Static arrays of programs and of shared libraries are far memory, with `--local` and near `--limit`.

use largesse_tests::{Ran, Run, Stage, User, events_are_permitted, is_root, users};
use std::path::{Path, PathBuf};

/// Size of the arrays that are zero at the start, in KiB: those of the library, and all.
const ZEROS: [u64; 2] = [96 << 10, 128 << 10];
/// Size of the library's array with initial values, in KiB.
const GIVEN: u64 = 9 << 10;
/// Size in KiB of pages that the arrays share with other data, which are near.
const SHARED: u64 = 64;

/// Compiles the library and the program that uses it. The program is linked with it if it `needs` it.
fn compiled(stage: &Stage, needs: bool) -> Option<(PathBuf, PathBuf)> {
    let library = stage.compiled("static_library.c", &["-shared", "-fPIC", "-O2", "-pthread"])?;
    let path = library.display().to_string();
    let before = ["-O2", "-pthread", "-ldl", "-Wl,--no-as-needed"];
    let options: Vec<&str> = before.into_iter().chain(needs.then_some(path.as_str())).collect();
    Some((stage.compiled("static_user.c", &options)?, library))
}

/// Returns the number behind `label` in the last line of a program.
#[track_caller]
fn number(ran: &Ran, label: &str) -> u64 {
    let rest = ran.stdout.split(label).nth(1).and_then(|rest| rest.trim_start().split(' ').next());
    rest.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {label} in {ran:#?}"))
}

/// Returns the fault engines to test, each with a user that may use it.
fn engines() -> Vec<(User, &'static str)> {
    let last = if is_root() { User::Unprivileged } else { User::Current };
    let chosen = users().into_iter().map(|user| (user, "auto"));
    chosen.chain([(last, "thread")]).collect()
}

/// Runs the program with a fault engine and `options`, with far pages in a file. `what` tells it what to do.
#[track_caller]
fn run(stage: &Stage, program: &Path, what: &str, (user, engine): (User, &str), options: &str) -> Ran {
    let store = stage.store();
    let options = [options, "--far", &store, "--fault-engine", engine];
    Run::new(stage, &[program]).arg(what).as_user(user).under(&options).finish().succeeded()
}

/// Returns the bytes of a region of far memory, by the report.
#[track_caller]
fn bytes(ran: &Ran, region: &str) -> u64 {
    let regions =
        ran.report["far"]["regions"].as_array().unwrap_or_else(|| panic!("no far memory: {ran:#?}"));
    let those = regions.iter().filter(|it| it["region"] == region);
    those.map(|it| it["mapped_bytes"].as_u64().unwrap()).sum()
}

#[test]
fn arrays_of_a_library_are_far() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    for (user, engine) in engines() {
        let ran = run(&stage, &program, "linked", (user, engine), "--local=16M");
        assert!(ran.stdout.starts_with("0 wrong\n"), "{user:?} {engine}: {ran:#?}");
        assert!(number(&ran, "anonymous") < 48 << 10, "{user:?} {engine}: {ran:#?}");
        let far = bytes(&ran, "static") >> 10;
        assert!((ZEROS[1] + GIVEN).abs_diff(far) < SHARED, "{far} KiB are far: {ran:#?}");
        assert_eq!(ran.hints, "", "{user:?} {engine}");
    }
}

#[test]
fn forked_child_has_arrays_of_its_own() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    for (user, engine) in engines() {
        let ran = run(&stage, &program, "fork", (user, engine), "--local=16M");
        assert!(ran.stdout.starts_with("child 0, 0 wrong\n"), "{user:?} {engine}: {ran:#?}");
    }
}

#[test]
fn switch_keeps_arrays_in_memory() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    let store = stage.store();
    let options = ["--local=16M", "--far", &store, "--static-data=off"];
    let ran = Run::new(&stage, &[&program]).arg("linked").under(&options).finish().succeeded();
    assert!(ran.stdout.starts_with("0 wrong\n"), "{ran:#?}");
    assert_eq!(bytes(&ran, "static"), 0, "{ran:#?}");
    assert!(number(&ran, "anonymous") >= ZEROS[1] + GIVEN, "{ran:#?}");
    assert!(ran.hints.contains(" MiB in static arrays"), "{}", ran.hints);
}

/// A library that the program opens can be closed again, and stays in memory. One line says so.
#[test]
fn arrays_of_an_opened_library_are_named() {
    let stage = Stage::new();
    let Some((program, library)) = compiled(&stage, false) else { return };
    let store = stage.store();
    for user in users() {
        let options = ["--local=16M", "--far", &store];
        let ran =
            Run::new(&stage, &[&program]).arg(&library).as_user(user).under(&options).finish().succeeded();
        assert!(ran.stdout.starts_with("0 wrong\n"), "{ran:#?}");
        assert!(number(&ran, "anonymous") >= ZEROS[0] + GIVEN, "{ran:#?}");
        assert!(ran.hints.contains(" MiB in static arrays"), "{}", ran.hints);
    }
}

/// Static arrays that are zero at the start become far: before the program starts if it could exceed the limit with
/// them, and otherwise when the limit comes near, while the program uses them.
#[test]
fn arrays_become_far_near_a_limit() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    for ((user, engine), mib) in engines().into_iter().flat_map(|it| [96, 160].map(|mib| (it, mib))) {
        let ran = run(&stage, &program, "linked", (user, engine), &format!("--limit={mib}M"));
        let which = format!("{user:?} {engine} {mib}: {ran:#?}");
        assert!(ran.stdout.starts_with("0 wrong\n"), "{which}");
        assert!(number(&ran, "peak") <= mib << 10, "{which}");
        let far = bytes(&ran, "static") >> 10;
        assert!(ZEROS[1].abs_diff(far) < SHARED, "{far} KiB are far: {which}");
        assert!(ran.hints.contains(&format!("comes near its limit of {mib}M")), "{which}");
    }
}

#[test]
fn forked_child_keeps_the_limit() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    for (user, engine) in engines() {
        let ran = run(&stage, &program, "fork", (user, engine), "--limit=128M");
        assert!(ran.stdout.starts_with("child 0, 0 wrong\n"), "{user:?} {engine}: {ran:#?}");
        assert!(number(&ran, "peak") <= 128 << 10, "{user:?} {engine}: {ran:#?}");
    }
}

#[test]
fn arrays_within_a_limit_stay_near() {
    let stage = Stage::new();
    let Some((program, _)) = compiled(&stage, true) else { return };
    if !events_are_permitted() {
        return;
    }
    let store = stage.store();
    for options in [["--limit=512M", "--static-data=on"], ["--limit=512M", "--static-data=off"]] {
        let options = [&options[..], &["--far", &store]].concat();
        let ran = Run::new(&stage, &[&program]).arg("linked").under(&options).finish().succeeded();
        assert!(ran.stdout.starts_with("0 wrong\n"), "{ran:#?}");
        assert!(ran.report["far"].is_null() && ran.hints.is_empty(), "{ran:#?}");
    }
}
