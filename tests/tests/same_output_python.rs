//! Python prints the same with and without the library.

use largesse_tests::{Run, Stage, has_program, same_output};

const PYTHON: &str = "/usr/bin/python3";

#[test]
fn growing_objects_text_and_processes_agree() {
    if has_program(PYTHON, &["--version"]) {
        let stage = Stage::new();
        let path = stage.program("objects.py");
        let program = Run::new(&stage, &[PYTHON, "-I"]).arg(path).variable("PYTHONHASHSEED", "0");
        same_output(&program, &[], 50);
    }
}

#[test]
fn numpy_arrays_algebra_transforms_and_threads_agree() {
    if has_program(PYTHON, &["-c", "import numpy"]) {
        let stage = Stage::new();
        let path = stage.program("matrices.py");
        same_output(&Run::new(&stage, &[PYTHON, "-I"]).arg(path), &[], 100);
    }
}

/// By default, Python cuts small blocks from arenas that it maps itself (1 MiB each, 256 KiB before 3.10). This test
/// sets `PYTHONMALLOC=malloc`, and the library's smallest limit, 64 KiB, so that Python sends all requests to the
/// library.
#[test]
fn programs_agree_when_every_request_uses_malloc() {
    if has_program(PYTHON, &["-c", "import numpy"]) {
        let stage = Stage::new();
        let path = stage.program("matrices.py");
        let program = Run::new(&stage, &[PYTHON]).arg(path).variable("PYTHONMALLOC", "malloc");
        same_output(&program, &["--min-kb", "64"], 200);
    }
}
