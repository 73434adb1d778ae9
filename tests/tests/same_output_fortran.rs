//! A Fortran program prints the same with and without the library.

use largesse_tests::{Ran, Run, Stage, same_output};
use serde_json::Value;

#[test]
fn allocated_grown_and_freed_arrays_agree() {
    let stage = Stage::new();
    if let Some(program) = stage.compiled("arrays.f90", &[]) {
        same_output(&Run::new(&stage, &[program]), &[], 20);
    }
}

/// The Fortran module works in a program that is not linked with the library. With far memory, its marks of a compute
/// core take effect. Without it, they return a status that says so, and nothing else changes.
#[test]
fn module_marks_a_compute_core() {
    let stage = Stage::new();
    let modules = stage.scratch();
    let Some(program) = stage.compiled("marked.f90", &["-J", &modules.to_string_lossy()]) else { return };
    let without = Run::new(&stage, &[&program]).finish().succeeded();
    let near = Run::new(&stage, &[&program]).under(&[]).finish().succeeded();
    let said = |ran: &Ran| ran.stdout.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(said(&without)[..4], ["-2", "-2", "-2", "-2"], "{without:#?}");
    // The number of threads can be set without far memory.
    assert_eq!(said(&near)[..4], ["-2", "-2", "-2", "0"], "{near:#?}");
    assert_eq!(said(&near)[4], said(&without)[4]);
    let far = Run::new(&stage, &[&program]).under(&["--local=4M", "--far=memory:"]).finish().succeeded();
    assert_eq!(said(&far)[..4], ["0", "0", "-1", "0"], "{far:#?}");
    assert_eq!(said(&far)[4], said(&without)[4]);
    let cores = far.report["tuned"].as_array().unwrap();
    let named = |core: &Value| (core["id"].clone(), core["iterations"].as_array().unwrap().len());
    assert_eq!(
        cores.iter().map(named).collect::<Vec<_>>(),
        [("sweep".into(), 5), ("without status".into(), 1)]
    );
}
