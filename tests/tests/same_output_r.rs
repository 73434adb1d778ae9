//! R prints the same with and without the library.

use largesse_tests::{Run, Stage, has_program, same_output};

#[track_caller]
fn check(script: &str, options: &[&str]) {
    if has_program("Rscript", &["--version"]) {
        let stage = Stage::new();
        let path = stage.program(script);
        same_output(&Run::new(&stage, &["Rscript", "--vanilla"]).arg(path), options, 100);
    }
}

#[test]
fn vectors_frames_models_and_files_agree() {
    check("vectors.R", &[]);
}

#[test]
fn vectors_on_ordinary_pages_at_the_c_librarys_offsets_agree() {
    check("vectors.R", &["--pages", "4k", "--align", "native", "--min-kb", "64"]);
}

#[test]
fn children_workers_programs_finalisers_and_the_profiler_agree() {
    check("sessions.R", &[]);
}

#[test]
fn packages_with_compiled_code_agree() {
    if has_program("Rscript", &["-e", "library(Matrix)"]) {
        check("packages.R", &["--min-kb", "64"]);
    }
}
