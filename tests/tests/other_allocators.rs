//! Tests programs with another allocator: they get every block from it, and have the same results as without the
//! library. One line of output reports that the library serves no block.

use largesse_tests::{Exit, Ran, Run, Stage, User, skipped, users};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Libraries of the allocators whose packages the Makefile lists.
const FILES: [&str; 3] = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"];

fn installed() -> impl Iterator<Item = (&'static str, PathBuf)> {
    FILES.into_iter().filter_map(|file| {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(file);
        if !path.exists() {
            skipped(&format!("no {file}"));
        }
        path.exists().then_some((file, path))
    })
}

/// Runs a program with the library and another allocator in `LD_PRELOAD`, in both orders. The test sets the variable
/// itself, because the launcher always puts the library first.
#[track_caller]
fn preloaded(source: &str, options: &[&str]) {
    let stage = Stage::new();
    let Some(program) = stage.compiled(source, options) else { return };
    let user = users().pop().unwrap_or(User::Current);
    let run = |preload: &str| {
        let words: [OsString; 3] =
            ["env".into(), format!("LD_PRELOAD={preload}").into(), program.clone().into_os_string()];
        Run::new(&stage, &words).as_user(user).finish()
    };
    let library = stage.library().display().to_string();
    for (file, other) in installed() {
        let other = other.display().to_string();
        let without = run(&other);
        for preload in [format!("{library}:{other}"), format!("{other}:{library}")] {
            compare(&without, &run(&preload), file, &preload);
        }
    }
}

#[track_caller]
fn compare(without: &Ran, with: &Ran, file: &str, case: &str) {
    assert_eq!(without.exit, Exit::Code(0), "the program needs no library to fail: {case} {without:#?}");
    let answers = |ran: &Ran| (ran.exit, ran.stdout.clone(), ran.stderr.clone());
    assert_eq!(answers(without), answers(with), "{case}");
    let line = format!("largesse: {file} brings its own malloc, which serves every block");
    assert_eq!(with.hints.matches(&line).count(), 1, "one line names the allocator: {case} {with:#?}");
}

#[track_caller]
fn linked(source: &str, options: &[&str]) {
    let stage = Stage::new();
    for (file, other) in installed() {
        let library = other.display().to_string();
        let options = [options, &["-Wl,--no-as-needed", &library, "-ldl"]].concat();
        let Some(program) = stage.compiled(source, &options) else { return };
        for user in users() {
            let run = Run::new(&stage, &[&program]).as_user(user);
            let with = run.clone().under(&[]).finish();
            compare(&run.finish(), &with, file, &format!("linked with {file} {user:?}"));
            assert_eq!(with.counter("allocations"), 0, "no block is the library's: {with:#?}");
            assert_eq!(with.not_granted("other-allocator"), 1, "{with:#?}");
        }
    }
}

const CPP: &[&str] = &["-std=c++17", "-fno-builtin"];

#[test]
fn every_new_and_delete_works_with_preloaded_allocators() {
    preloaded("new_delete.cpp", CPP);
}

#[test]
fn every_new_and_delete_works_with_linked_allocators() {
    linked("new_delete.cpp", CPP);
}

#[test]
fn preloaded_allocators_take_blocks_in_their_own_calls() {
    preloaded("own_calls.c", &["-ldl"]);
}

#[test]
fn linked_allocators_take_blocks_in_their_own_calls() {
    linked("own_calls.c", &[]);
}

#[test]
fn malloc_family_works_with_preloaded_allocators() {
    preloaded("plain_calls.c", &[]);
}

/// Only children of the launched process have another allocator. The first of them names it, and itself.
#[test]
fn one_child_names_the_allocator() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("plain_calls.c", &[]) else { return };
    let Some((file, other)) = installed().next() else { return };
    let run = format!("LD_PRELOAD=$LD_PRELOAD:{} {} >/dev/null", other.display(), program.display());
    let script = format!("{run}; {run}; true");
    let ran = Run::new(&stage, &["sh", "-c", &script, "sh"]).under(&[]).finish().succeeded();
    assert_eq!((ran.hints.lines().count(), ran.stderr.as_str()), (1, ""), "{ran:#?}");
    let line = format!("): {file} brings its own malloc, which serves every block");
    assert!(
        ran.hints.starts_with("largesse: plain_calls.bin (process ") && ran.hints.contains(&line),
        "{ran:#?}"
    );
}

/// The program exports its own `malloc`, so that the C library uses that one, too.
#[test]
fn program_with_its_own_malloc_keeps_its_blocks() {
    let stage = Stage::new();
    let Some(program) = stage.compiled("own_malloc.c", &["-rdynamic"]) else { return };
    for user in users() {
        let run = Run::new(&stage, &[&program]).as_user(user);
        let with = run.clone().under(&[]).finish();
        compare(&run.finish(), &with, "own_malloc.bin", &format!("{user:?}"));
    }
}
