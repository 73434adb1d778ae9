//! Python prints the same with and without the library.

use largesse_tests::{Run, Stage, has_program, same_output};

const PYTHON: &str = "/usr/bin/python3";

#[test]
fn objects_that_grow_text_and_other_processes() {
    if has_program(PYTHON, &["--version"]) {
        let stage = Stage::new();
        let path = stage.program("objects.py");
        let program = Run::new(&stage, &[PYTHON, "-I"]).arg(path).variable("PYTHONHASHSEED", "0");
        same_output(&program, &[], 50);
    }
}

#[test]
fn numpy_arrays_algebra_transforms_and_threads() {
    if has_program(PYTHON, &["-c", "import numpy"]) {
        let stage = Stage::new();
        let path = stage.program("matrices.py");
        same_output(&Run::new(&stage, &[PYTHON, "-I"]).arg(path), &[], 100);
    }
}

/// Python's own small blocks come from arenas of 1 MiB (256 KiB before 3.10) by mmap; with malloc
/// for everything, and every request of 64 KiB or more taken, nothing is left out.
#[test]
fn every_request_through_malloc() {
    if has_program(PYTHON, &["-c", "import numpy"]) {
        let stage = Stage::new();
        let path = stage.program("matrices.py");
        let program = Run::new(&stage, &[PYTHON]).arg(path).variable("PYTHONMALLOC", "malloc");
        same_output(&program, &["--min-kb", "64"], 200);
    }
}
