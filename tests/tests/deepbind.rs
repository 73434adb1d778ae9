//! A library that is opened with `RTLD_DEEPBIND` may free and resize the program's large blocks.

use largesse_tests::{Run, Stage, same_output, skipped};
use std::path::{Path, PathBuf};

/// Compiles the program and two copies of the plug-in into one folder. The program and the plug-ins have these options
/// for the linker.
fn stage(program_options: &[&str], library_options: &[&str]) -> Option<(Stage, PathBuf, [PathBuf; 2])> {
    let stage = Stage::new();
    let program = stage.compiled("deep.c", &[&["-ldl"], program_options].concat())?;
    let built = stage.compiled("deep_plugin.c", &[&["-shared", "-fPIC"], library_options].concat())?;
    let copies = ["libdeep.so", "libdeeper.so"].map(|name| stage.path(name));
    for copy in &copies {
        std::fs::copy(&built, copy).unwrap();
    }
    Some((stage, program, copies))
}

#[track_caller]
fn check(words: &[&str], library_options: &[&str], blocks: u64) {
    let Some((stage, program, [first, second])) = stage(&[], library_options) else { return };
    let run = words.iter().fold(Run::new(&stage, &[program]), |run, word| run.arg(word));
    same_output(&run.arg(first).arg(second), &[], blocks);
}

#[test]
fn deepbound_library_frees_large_blocks() {
    check(&[], &[], 12);
}

#[test]
fn lazily_bound_library_frees_large_blocks() {
    check(&["lazy"], &["-Wl,-z,lazy"], 12);
}

#[test]
fn slots_behind_relro_are_patched() {
    check(&[], &["-Wl,-z,relro,-z,now"], 12);
}

/// A library linked with mimalloc takes its blocks from there, and never from the C library or from ours.
#[test]
fn deepbound_library_keeps_its_own_allocator() {
    let other = "/usr/lib/x86_64-linux-gnu/libmimalloc.so.2";
    if !Path::new(other).exists() {
        skipped("no libmimalloc.so.2");
        return;
    }
    let stage = Stage::new();
    let source = r#"#include <stdlib.h>
        int self(void) { for (int i = 0; i < 9; i++) { char *p = malloc(3 << 20); p[5] = 1; p = realloc(p, 9 << 20); free(p); } return 7; }"#;
    let file = stage.path("self.c");
    std::fs::write(&file, source).unwrap();
    let library = stage.path("libself.so");
    let words = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"];
    let made = std::process::Command::new("cc").args(words).arg(&library).arg(&file).arg(other).status();
    assert!(made.is_ok_and(|made| made.success()), "cc links a library with mimalloc");
    let script = "import ctypes, os, sys\n\
        print(ctypes.CDLL(sys.argv[1], mode=os.RTLD_DEEPBIND | os.RTLD_NOW).self())";
    let run = Run::new(&stage, &["/usr/bin/python3", "-c", script]).arg(&library);
    same_output(&run, &[], 0);
}

/// The C library searches for a library in the RUNPATH of the object that calls `dlopen`. Our `dlopen` must not be
/// that object.
#[test]
fn callers_search_path_is_kept() {
    let Some((stage, program, _)) = stage(&["-Wl,-rpath,$ORIGIN"], &[]) else { return };
    let opens = |run: Run<'_>| {
        let ran = run.finish();
        assert!(!ran.stdout.contains("not opened"), "the library beside the program is found: {ran:#?}");
    };
    let run = Run::new(&stage, &[program]).arg("libdeep.so").arg("libdeeper.so");
    opens(run.clone());
    opens(run.under(&[]));
}

#[test]
fn library_in_the_search_path_frees_large_blocks() {
    let Some((stage, program, [first, _])) = stage(&[], &[]) else { return };
    let folder = first.parent().unwrap().as_os_str();
    let run = Run::new(&stage, &[program]).arg("libdeep.so").arg("libdeeper.so");
    same_output(&run.variable("LD_LIBRARY_PATH", folder), &[], 12);
}
